package iwarp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// Open makes an instance on l. It opens no fd.
func (d *Driver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in := &instance{
		drv: d, cfg: d.cfg, loop: l, up: up,
		ids:     make(map[cmid.Handle]*ident),
		probes:  make(map[int]int),
		staging: make([]byte, stagingLen),
		iov:     make([][]byte, 0, iovLen),
		land:    make([][]byte, 0, landLen),
	}
	in.dev = newDevice(in)
	return in, nil
}

// CreateID makes an identifier. It fails with EPROTONOSUPPORT for datagrams and AF_IB port spaces.
func (in *instance) CreateID(h cmid.Handle, ps cmid.PortSpace, _ cmid.QPType) (cmid.DriverID, error) {
	switch {
	case in.closed:
		return nil, unix.ENODEV
	case ps != cmid.PortSpaceTCP && ps != 0:
		return nil, fmt.Errorf("iwarp has reliable connections only, not port space %v: %w", ps, unix.EPROTONOSUPPORT)
	}
	id := &ident{in: in, h: h, fd: -1}
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
	for _, id := range in.ids {
		id.destroy()
	}
	for _, fd := range in.probes {
		closeFD(fd)
	}
	for _, q := range in.dev.qps { // of identifiers that were migrated
		q.conn.abort(time.Now())
		q.conn.close()
	}
	for in.setups.oldest != nil {
		in.setups.oldest.close()
	}
	for in.lingers.oldest != nil {
		in.lingers.oldest.close()
	}
	clear(in.events)
	in.events, in.first, in.notify, in.low, in.dirty, in.serving, in.resuming = nil, 0, nil, nil, nil, nil, nil
	if n := in.conns; n != 0 {
		return fmt.Errorf("iwarp: %d connections left after close: %w", n, unix.EBUSY)
	}
	return nil
}
