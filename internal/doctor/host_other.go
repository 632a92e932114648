//go:build !linux

package doctor

import (
	"context"
	"fmt"

	"github.com/rdmactor/rdmactor/verbs"
)

// examineHost fails: only Linux has these devices.
func examineHost(context.Context, Config) (*Report, error) {
	return nil, fmt.Errorf("only Linux has RDMA devices: %w", verbs.ErrNotSupported)
}
