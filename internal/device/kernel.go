package device

import (
	"net/netip"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
)

// kernel is rdma_cm with the data path of the kernel's soft devices.
func kernel() cmid.Driver { return ucm.New() }

func (thisHost) device(local netip.Addr) (name string, ok bool, err error) {
	name, ok, err = ucm.DeviceFor(local)
	if ok && name == "" {
		name = "an RDMA device"
	}
	return name, ok, err
}
