//go:build !linux

package eventloop

import (
	"errors"
	"fmt"
	"runtime"
)

// newPoller fails without epoll; a loop with a Poller of the caller's works
// everywhere.
func newPoller() (Poller, error) {
	return nil, fmt.Errorf("epoll on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
