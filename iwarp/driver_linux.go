package iwarp

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sockets"
	"github.com/rdmactor/rdmactor/verbs"
)

// Open makes an instance on l. It opens no fd.
func (d *Driver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in := &instance{
		drv: d, cfg: d.cfg, loop: l, up: up, sys: d.newStack(),
		ids:    make(map[cmid.Handle]*driverID),
		probes: make(map[int]int),
		input:  make([]byte, inputLen),
		iov:    make([][]byte, 0, sockets.MaxBuffers),
		land:   make([][]byte, 0, landLen),
	}
	in.dev = newDevice(in)
	return in, nil
}

func (d *Driver) newStack() sockets.Stack {
	if d.stack != nil {
		return d.stack()
	}
	return new(sockets.Linux)
}

// Enclosed reports whether the machine is a simulated one.
func (in *instance) Enclosed() bool { return in.drv.stack != nil }

// CreateID makes an identifier. It fails with EPROTONOSUPPORT for datagrams and AF_IB port spaces.
func (in *instance) CreateID(h cmid.Handle, ps cmid.PortSpace, _ cmid.QPType) (cmid.DriverID, error) {
	switch {
	case in.closed:
		return nil, unix.ENODEV
	case ps != cmid.PortSpaceTCP && ps != 0:
		return nil, fmt.Errorf("iwarp has reliable connections only, not port space %v: %w", ps, unix.EPROTONOSUPPORT)
	}
	id := &driverID{in: in, h: h, fd: -1}
	in.ids[h] = id
	return id, nil
}

// Devices returns the one device.
func (in *instance) Devices() []verbs.Device { return []verbs.Device{in.dev} }

// Close destroys every identifier and closes every socket, including those that linger.
func (in *instance) Close() error {
	if in.closed {
		return nil
	}
	in.closed = true
	// in order, so that peers see the same in each run of a simulation
	for _, h := range slices.Sorted(maps.Keys(in.ids)) {
		in.ids[h].destroy()
	}
	for _, domain := range slices.Sorted(maps.Keys(in.probes)) {
		in.closeFD(in.probes[domain])
	}
	for _, n := range slices.Sorted(maps.Keys(in.dev.qps)) { // of identifiers that were migrated
		c := in.dev.qps[n].conn
		c.abort(in.loop.Now())
		c.close()
	}
	for in.setups.oldest != nil {
		in.setups.oldest.close()
	}
	for in.lingers.oldest != nil {
		in.lingers.oldest.close()
	}
	clear(in.events)
	in.events, in.first, in.notify, in.low, in.dirty, in.serving = nil, 0, nil, nil, nil, nil
	if n := in.conns; n != 0 {
		return fmt.Errorf("iwarp: %d connections left after close: %w", n, unix.EBUSY)
	}
	return nil
}
