package cmidtest

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Private data: what a command may carry, and on InfiniBand what its event is padded to.
const (
	ibConnect, ibAccept, ibReject = 56, 196, 148
	udConnect, udAnswer           = 180, 136
	iwarpData                     = 251
	embeddedData                  = 248
)

const (
	maxBacklog = 1024
	maxMessage = 16 << 20
)

// driver is a host's devices as cmid sees them.
type driver struct{ host *Host }

// Name says what it is.
func (d *driver) Name() string {
	if d.host.name == "" {
		return "memory"
	}
	return "memory " + d.host.name
}

// Open adds a loop to the host.
func (d *driver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in := &instance{
		f: d.host.f, host: d.host, loop: l, up: up,
		ids:     make(map[cmid.Handle]*ident),
		views:   make(map[*device]*view),
		lastDue: make(map[*instance]time.Time),
	}
	in.lateTimer = l.NewTimer(in.deliverLate)
	in.f.mu.Lock()
	defer in.f.mu.Unlock()
	in.f.opened++
	in.salt = byte(2*in.f.opened + 1)
	d.host.instances = append(d.host.instances, in)
	return in, nil
}

// instance is a host's devices on one loop.
type instance struct {
	f      *Fabric
	host   *Host
	loop   *eventloop.Loop
	up     cmid.Upcalls
	ids    map[cmid.Handle]*ident
	views  map[*device]*view
	closed bool
	salt   byte // odd; the low byte of every key

	box       inbox
	batch     []packet // taken out of box, to be handled in this turn
	spare     []packet
	late      []latePacket // by due time
	lastDue   map[*instance]time.Time
	lateTimer *eventloop.Timer

	dirty   []*cq       // have completions nobody was told of
	held    []heldEvent // Reorder keeps them back
	telling []heldEvent // no longer

	frozen bool     // the loop stands in box.ice
	untold []func() // what the program is told when it goes on
}

type heldEvent struct {
	id *ident
	ev cmid.DriverEvent
}

// CreateID makes an identifier. EPROTONOSUPPORT for RDMA_PS_IB, whose addresses the twin does not
// have; the embedded device has reliable connections only.
func (in *instance) CreateID(h cmid.Handle, ps cmid.PortSpace, _ cmid.QPType) (cmid.DriverID, error) {
	if err := in.f.exhausted(); err != nil {
		return nil, err
	}
	switch ps {
	case cmid.PortSpaceTCP:
	case cmid.PortSpaceUDP, cmid.PortSpaceIPOIB:
		if in.f.embedded {
			return nil, unix.EPROTONOSUPPORT
		}
	case cmid.PortSpaceIB:
		return nil, unix.EPROTONOSUPPORT
	default:
		return nil, unix.EINVAL
	}
	return in.newIdent(h, ps), nil
}

// Devices lists the host's.
func (in *instance) Devices() []verbs.Device {
	in.f.mu.Lock()
	ds := slices.Clone(in.host.devices)
	in.f.mu.Unlock()
	out := make([]verbs.Device, len(ds))
	for i, d := range ds {
		out[i] = in.view(d)
	}
	return out
}

// Close destroys what is left.
func (in *instance) Close() error {
	for _, id := range in.ids {
		id.destroy()
	}
	in.closed = true
	in.lateTimer.Stop()
	for i := range in.late {
		in.f.read(in.late[i].listener)
		in.late[i].release()
	}
	in.late, in.held = nil, nil
	in.box.mu.Lock()
	in.box.closed = true
	left := in.box.in
	in.box.in = nil
	in.box.mu.Unlock()
	for i := range left {
		in.f.read(left[i].listener)
		left[i].release()
	}
	in.f.mu.Lock()
	defer in.f.mu.Unlock()
	in.host.instances = slices.DeleteFunc(in.host.instances, func(other *instance) bool { return other == in })
	return nil
}

// event tells ev, after the completions that came before it. On the loop, never inside a call of
// the application's.
func (in *instance) event(id *ident, ev cmid.DriverEvent) {
	if in.frozen {
		in.program(func() { in.event(id, ev) })
		return
	}
	if len(in.held) > 0 || in.f.coin() {
		in.held = append(in.held, heldEvent{id, ev})
		in.later(in.tellHeld)
		return
	}
	in.tellCompletions()
	in.tell(id, &ev)
}

func (in *instance) tell(id *ident, ev *cmid.DriverEvent) {
	if in.ids[id.h] == id {
		in.up.Event(id.h, ev)
	} else if ev.Kind == states.KindConnectRequest {
		_ = ev.Child.Do(&cmid.DestroyID{}) // the listener went with the request unread
	}
}

// tellHeld tells what Reorder has kept back.
func (in *instance) tellHeld() {
	if in.frozen {
		return
	}
	left := true
	defer func() {
		if left { // as in Run
			in.later(in.tellHeld)
		}
	}()
	in.telling = append(in.telling, in.held...)
	for in.held = nil; len(in.telling) > 0; {
		e := in.telling[0]
		in.telling = in.telling[1:]
		in.tell(e.id, &e.ev)
	}
	left = false
}

// tellCompletions calls the notify of every completion queue that has new ones.
func (in *instance) tellCompletions() {
	if len(in.dirty) == 0 || in.frozen {
		return
	}
	if in.f.coin() {
		in.kick()
		return
	}
	for len(in.dirty) > 0 {
		q := in.dirty[0]
		in.dirty = slices.Delete(in.dirty, 0, 1)
		q.dirty = false
		q.notify()
	}
}

// view is d as this loop sees it.
func (in *instance) view(d *device) *view {
	v := in.views[d]
	if v == nil {
		v = &view{in: in, dev: d}
		v.pd.v = v
		in.views[d] = v
	}
	return v
}

// dropRemoved tells the identifiers of removed devices.
func (in *instance) dropRemoved() {
	in.f.mu.Lock()
	var gone []*ident
	for _, id := range in.ids {
		if id.dev != nil && id.dev.removed && id.state != states.Removed {
			gone = append(gone, id)
		}
	}
	in.f.mu.Unlock()
	oldestFirst(gone)
	for _, id := range gone {
		id.removeDevice()
	}
}
