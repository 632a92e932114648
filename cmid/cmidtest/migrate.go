package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Detach takes the identifier off its loop. It is the first half of rdma_migrate_id(3).
func (id *driverID) Detach() (cmid.DetachedInstance, error) {
	if id.state == states.Removed {
		return nil, unix.ENXIO
	}
	return id.in.detachDriverID(id), nil
}

func (in *instance) detachDriverID(id *driverID) *detached {
	d := &detached{from: in, id: id}
	delete(in.ids, id.h)
	d.ticking = id.timer.stop()
	id.stream.setStalled(false) // until then a cut link goes unnoticed
	id.timer.clock, id.stream.stall = clock{}, clock{}
	in.delivering = d.takeEvents(in.delivering)
	in.kept = d.takeEvents(in.kept)
	mine := func(p *packet) bool { return p.to.h == id.h }
	in.late, d.late = takeOut(in.late, d.late, mine)
	in.box.mu.Lock()
	defer in.box.mu.Unlock()
	in.batch, d.came = takeOut(in.batch, d.came, mine)
	in.box.in, d.came = takeOut(in.box.in, d.came, mine)
	in.box.moved[id.h] = d
	return d
}

// takeEvents moves the identifier's events from those that Reorder delays to d. It detaches the
// children of requests among them as well.
func (d *detached) takeEvents(from []keptEvent) (left []keptEvent) {
	return slices.DeleteFunc(from, func(e keptEvent) bool {
		if e.id != d.id {
			return false
		}
		d.kept = append(d.kept, e)
		if child, ok := e.ev.Child.(*driverID); ok && child.isAlive() && child.state != states.Removed {
			// a child whose device was removed is destroyed when the request is delivered
			d.children = append(d.children, d.from.detachDriverID(child))
		}
		return true
	})
}

// Attach puts the identifier on the loop of other. It is the second half of rdma_migrate_id(3).
func (d *detached) Attach(other cmid.Instance) error {
	to, ok := other.(*instance)
	if !ok || to.host != d.from.host || to.closed {
		return unix.EINVAL
	}
	d.attachTo(to)
	return nil
}

func (d *detached) attachTo(to *instance) {
	id := d.id
	id.in = to
	to.ids[id.h] = id
	for _, child := range d.children {
		child.attachTo(to)
	}
	if d.ticking {
		id.setTimer(max(id.timer.due.Sub(to.loop.Now()), 0), id.timer.fn)
	}
	for _, e := range d.kept {
		to.kept = append(to.kept, e)
		to.runLater(to.deliverKept)
	}
	for _, p := range d.late {
		to.putLate(p)
	}
	to.box.mu.Lock()
	delete(to.box.moved, id.h) // the identifier may have come back to it
	to.box.mu.Unlock()
	d.forwardTo(to)
	to.runLater(to.dropRemoved) // its device may have been removed in between
}

// forwardTo passes arrived and later messages on to the instance to.
func (d *detached) forwardTo(to *instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.came {
		to.queuePacket(p)
	}
	d.came, d.to = nil, to
}

// Destroy destroys the identifier. The peer is notified.
func (d *detached) Destroy() {
	for _, child := range d.children {
		child.Destroy()
	}
	d.id.destroyInPlace()
	d.mu.Lock()
	came := d.came
	d.came, d.gone = nil, true
	d.mu.Unlock()
	d.from.f.dropAll(came)
	d.from.f.dropAll(d.late)
}
