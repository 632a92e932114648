package cmidtest

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// driver is the cmid.Driver of a host's devices.
type driver struct{ host *Host }

// Name is "memory", with the host's name.
func (d *driver) Name() string {
	return strings.TrimSpace("memory " + d.host.name)
}

// Open adds a loop to the host.
func (d *driver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in := &instance{
		f: d.host.f, host: d.host, loop: l, up: up,
		ids:     make(map[cmid.Handle]*driverID),
		views:   make(map[*device]*view),
		lastDue: make(map[*instance]time.Time),
	}
	in.box.moved = make(map[cmid.Handle]*detached)
	in.lateTimer = l.NewTimer(in.deliverLate)
	in.f.mu.Lock()
	defer in.f.mu.Unlock()
	in.f.opened++
	in.salt = byte(2*in.f.opened + 1)
	d.host.instances = append(d.host.instances, in)
	return in, nil
}

// CreateID makes an identifier. It fails with EPROTONOSUPPORT for RDMA_PS_IB, because the twin does
// not have that port space's addresses. The embedded device has reliable connections only.
func (in *instance) CreateID(h cmid.Handle, ps cmid.PortSpace, _ cmid.QPType) (cmid.DriverID, error) {
	if err := in.f.allocError(resIdentifier); err != nil {
		return nil, err
	}
	switch {
	case ps == cmid.PortSpaceTCP, ps.Datagram() && !in.f.embedded:
		return in.newDriverID(h, ps), nil
	case ps == cmid.PortSpaceIB, ps.Datagram():
		return nil, unix.EPROTONOSUPPORT
	}
	return nil, unix.EINVAL
}

// Enclosed is true: sent bytes stay in memory.
func (in *instance) Enclosed() bool { return true }

// Devices lists the host's devices.
func (in *instance) Devices() []verbs.Device {
	in.f.mu.Lock()
	ds := slices.Clone(in.host.devices)
	in.f.mu.Unlock()
	out := make([]verbs.Device, len(ds))
	for i, d := range ds {
		out[i] = in.viewOf(d)
	}
	return out
}

// Close destroys the identifiers that are left.
func (in *instance) Close() error {
	for _, id := range in.sortedDriverIDs() {
		id.destroy()
	}
	in.closed = true
	in.lateTimer.Stop()
	in.f.dropAll(in.late)
	in.late, in.kept = nil, nil
	in.box.mu.Lock()
	in.box.closed = true
	left := in.box.in
	in.box.in = nil
	in.box.mu.Unlock()
	in.f.dropAll(left)
	in.f.mu.Lock()
	defer in.f.mu.Unlock()
	in.host.instances = slices.DeleteFunc(in.host.instances, func(other *instance) bool { return other == in })
	return nil
}

// Driver returns the driver of the host named "".
func (f *Fabric) Driver() cmid.Driver { return f.Host("").Driver() }

// Driver returns the host's driver. It may be opened on any number of loops.
func (h *Host) Driver() cmid.Driver { return &driver{h} }
