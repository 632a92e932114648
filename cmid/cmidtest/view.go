package cmidtest

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/cmidtest/internal/memory"
	"github.com/rdmactor/rdmactor/verbs"
)

// Limits on the queues and on their work requests.
const (
	maxInline = 64
	maxSGE    = 16
	maxCQE    = 1 << 15
)

// maxDatagram is a RoCE port's MTU on Ethernet with the usual MTU of 1500 bytes.
const maxDatagram = 1024

// view is one loop's view of a device. It implements verbs.Device. memory.Device has its memory.
type view struct {
	*memory.Device
	in  *instance
	dev *device
}

// viewOf returns this loop's view of d.
func (in *instance) viewOf(d *device) *view {
	v := in.views[d]
	if v == nil {
		v = &view{in: in, dev: d, Device: memory.NewDevice(memory.Config{
			Shares: !in.f.reserved, Atomics: !in.f.iwarp, Salt: in.salt,
			Full:  func(what string) error { return in.f.allocError(resource(what)) },
			Count: func(what string, n int) { d.countObjects(resource(what), n) },
		})}
		in.views[d] = v
	}
	return v
}

// object is the common part of a program's objects on a device.
type object struct {
	v      *view
	pd     *memory.Domain // nil: it is in none
	what   resource
	users  int // it cannot be closed while it has users
	closed bool
}

func (v *view) newObject(what resource, pd *memory.Domain) (object, error) {
	if err := v.in.f.allocError(what); err != nil {
		return object{}, err
	}
	if pd != nil {
		pd.Use(1)
	}
	v.dev.countObjects(what, 1)
	return object{v: v, pd: pd, what: what}, nil
}

// close closes the object. It returns EBUSY while the object has users. A second close does
// nothing.
func (o *object) close() error {
	switch {
	case o.users > 0:
		return unix.EBUSY
	case o.closed:
		return nil
	case o.pd != nil:
		o.pd.Use(-1)
	}
	o.closed = true
	o.v.dev.countObjects(o.what, -1)
	return nil
}

// isUsable reports whether a queue pair on v may use the object.
func (o *object) isUsable(v *view) bool { return o.v == v && !o.closed }

// Name is the device's.
func (v *view) Name() string { return v.dev.name }

// Attr returns limits that are low enough for a test to reach.
func (v *view) Attr() verbs.DeviceAttr {
	attr := verbs.DeviceAttr{
		MaxQP: 1 << 16, MaxQPWR: 1 << 14, MaxSGE: maxSGE, MaxInline: maxInline, MaxMessage: maxMessage,
		MaxRDAtom: int(v.in.f.depth), AsksForReceives: !v.in.f.reserved, Invalidates: !v.in.f.reserved,
		SharesMemory: !v.in.f.reserved, OverlooksFirst: v.in.f.mayOverlook(),
		QPAccess: !v.in.f.iwarp || !v.in.f.reserved,
	}
	if v.in.f.reserved {
		attr.MaxCQE = maxCQE
	}
	if !v.in.f.iwarp {
		attr.MaxDatagram, attr.Immediate, attr.Atomics = maxDatagram, true, true
	}
	return attr
}
