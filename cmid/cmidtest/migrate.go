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
	id.unstall() // a link that is cut then is not noticed
	id.timer, id.stall = clock{}, clock{}
	in.delivering = d.take(in.delivering)
	in.kept = d.take(in.kept)
	mine := func(p *packet) bool { return p.to.h == id.h }
	in.late, d.late = takeOut(in.late, d.late, mine)
	in.box.mu.Lock()
	defer in.box.mu.Unlock()
	in.batch, d.came = takeOut(in.batch, d.came, mine)
	in.box.in, d.came = takeOut(in.box.in, d.came, mine)
	in.box.moved[id.h] = d
	return d
}

// take takes the identifier's events out of those that Reorder delays. The children of requests
// among them are detached as well.
func (d *detached) take(from []keptEvent) (left []keptEvent) {
	return slices.DeleteFunc(from, func(e keptEvent) bool {
		if e.id != d.id {
			return false
		}
		d.kept = append(d.kept, e)
		if child, ok := e.ev.Child.(*ident); ok && child.alive() && child.state != states.Removed {
			// a child without a device is destroyed when the request is delivered
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
	for _, e := range d.kept {
		to.kept = append(to.kept, e)
		to.later(to.deliverKept)
	}
	for _, p := range d.late {
		to.putLate(p)
	}
	to.box.mu.Lock()
	delete(to.box.moved, id.h) // for an identifier that comes back
	to.box.mu.Unlock()
	d.open(to)
	to.later(to.dropRemoved) // its device may have gone before this loop had it
}

// open passes on to to what has come, and what will come.
func (d *detached) open(to *instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.came {
		to.put(p)
	}
	d.came, d.to = nil, to
}

// Destroy destroys the identifier. The peer is notified.
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
	d.from.f.dropAll(d.late)
}
