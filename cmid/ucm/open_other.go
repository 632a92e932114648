//go:build !linux

package ucm

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

var errNeedsLinux = fmt.Errorf("ucm: rdma_cm is Linux's: %w", errors.ErrUnsupported)

// Open fails: errors.ErrUnsupported.
func (d *Driver) Open(*eventloop.Loop, cmid.Upcalls) (cmid.Instance, error) {
	return nil, errNeedsLinux
}

// DeviceFor fails: errors.ErrUnsupported.
func DeviceFor(netip.Addr) (name string, ok bool, err error) { return "", false, errNeedsLinux }
