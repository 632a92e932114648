package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Detach takes the identifier off its loop: the first half of rdma_migrate_id(3).
func (id *ident) Detach() (cmid.DetachedInstance, error) {
	if id.state == states.Removed {
		return nil, unix.ENXIO
	}
	return id.in.detach(id), nil
}

func (in *instance) detach(id *ident) *detached {
	d := &detached{from: in, id: id}
	delete(in.ids, id.h)
	d.ticking = id.timer.stop()
	id.unstall() // a link that is cut then stays unnoticed
	id.timer, id.stall = clock{}, clock{}
	in.telling = d.take(in.telling)
	in.held = d.take(in.held)
	in.late, d.late = takeOut(in.late, d.late, func(p *latePacket) bool { return p.to.h == id.h })
	in.box.mu.Lock()
	defer in.box.mu.Unlock()
	come := func(p *packet) bool { return p.to.h == id.h }
	in.batch, d.came = takeOut(in.batch, d.came, come)
	in.box.in, d.came = takeOut(in.box.in, d.came, come)
	in.box.moved[id.h] = d
	return d
}

// take takes the identifier's events out of those that Reorder keeps back, and the identifiers
// that requests among them bring.
func (d *detached) take(from []heldEvent) (left []heldEvent) {
	return slices.DeleteFunc(from, func(e heldEvent) bool {
		if e.id != d.id {
			return false
		}
		d.held = append(d.held, e)
		if child, ok := e.ev.Child.(*ident); ok && child.alive() && child.state != states.Removed {
			// without a device it is destroyed when the request is told
			d.children = append(d.children, d.from.detach(child))
		}
		return true
	})
}

// Attach puts it on to's loop: the second half.
func (d *detached) Attach(other cmid.Instance) error {
	to, ok := other.(*instance)
	if !ok || to.host != d.from.host || to.closed {
		return unix.EINVAL
	}
	d.attach(to)
	return nil
}

func (d *detached) attach(to *instance) {
	id := d.id
	id.in = to
	to.ids[id.h] = id
	for _, child := range d.children {
		child.attach(to)
	}
	if d.ticking {
		id.arm(max(id.due.Sub(to.loop.Now()), 0), id.onTimer)
	}
	for _, e := range d.held {
		to.held = append(to.held, e)
		to.later(to.tellHeld)
	}
	for _, p := range d.late {
		to.putLate(p)
	}
	to.box.mu.Lock()
	delete(to.box.moved, id.h) // it may have been there before
	to.box.mu.Unlock()
	d.open(to)
	to.later(to.dropRemoved) // if its device has gone meanwhile, this loop was told too early
}

// open has what has come, and what will come, go to to.
func (d *detached) open(to *instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.came {
		to.put(p)
	}
	d.came, d.to = nil, to
}

// Destroy gives it up, with what that tells the peer.
func (d *detached) Destroy() {
	for _, child := range d.children {
		child.Destroy()
	}
	d.id.vanish()
	d.mu.Lock()
	came := d.came
	d.came, d.gone = nil, true
	d.mu.Unlock()
	d.from.f.dropAll(came)
	for i := range d.late {
		d.from.f.drop(&d.late[i].packet)
	}
}
