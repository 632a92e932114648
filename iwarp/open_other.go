//go:build !linux

package iwarp

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Open fails with errors.ErrUnsupported.
func (d *Driver) Open(*eventloop.Loop, cmid.Upcalls) (cmid.Instance, error) {
	return nil, fmt.Errorf("iwarp: opening a device needs Linux: %w", errors.ErrUnsupported)
}
