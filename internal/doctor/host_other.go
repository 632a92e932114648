//go:build !linux

package doctor

import (
	"context"
	"fmt"

	"github.com/rdmactor/rdmactor/verbs"
)

// look fails: only Linux has these devices.
func look(context.Context, Config) (*Report, error) {
	return nil, fmt.Errorf("only Linux has RDMA devices: %w", verbs.ErrNotSupported)
}
