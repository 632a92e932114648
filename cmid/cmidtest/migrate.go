package cmidtest

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Migrate is rdma_migrate_id(3). Peers go on sending to the instance that made the identifier, which passes on what comes for it, also
// once it is closed.
func (in *instance) Migrate(h cmid.Handle, to cmid.Instance) error {
	if in.f.embedded {
		return cmid.ErrNotSupported
	}
	now, ok := to.(*instance)
	id := in.ids[h]
	switch {
	case !ok || now.host != in.host:
		return unix.EINVAL
	case id == nil:
		return unix.ENOENT
	case id.state == states.Removed:
		return unix.ENXIO
	}
	delete(in.ids, h)
	now.ids[h] = id
	id.in = now
	if id.timer != nil {
		left := id.due.Sub(now.loop.Now())
		running := id.timer.Stop()
		id.timer = nil
		if running {
			id.arm(left, id.onTimer)
		}
	}
	in.handOver(h, now)
	return nil
}

// handOver gives now what is on its way to h, in its order, and all that will come.
func (in *instance) handOver(h cmid.Handle, now *instance) {
	in.held = slices.DeleteFunc(in.held, func(e heldEvent) bool {
		if e.id.h == h {
			in.follow(&e, now)
			now.held = append(now.held, e)
			now.later(now.tellHeld)
		}
		return e.id.h == h
	})
	in.late = slices.DeleteFunc(in.late, func(p latePacket) bool {
		if p.to.h == h {
			now.putLate(p)
		}
		return p.to.h == h
	})
	now.box.mu.Lock()
	delete(now.box.moved, h) // it may have been there before
	now.box.mu.Unlock()
	in.box.mu.Lock()
	defer in.box.mu.Unlock()
	pass := func(p packet) bool {
		if p.to.h == h {
			now.put(p)
		}
		return p.to.h == h
	}
	in.batch = slices.DeleteFunc(in.batch, pass)
	in.box.in = slices.DeleteFunc(in.box.in, pass)
	if in.box.moved == nil {
		in.box.moved = make(map[cmid.Handle]*instance)
	}
	in.box.moved[h] = now
}

// follow has the identifier that a request brings go where its listener has gone.
func (in *instance) follow(e *heldEvent, now *instance) {
	if e.ev.Kind == states.KindConnectRequest && in.ids[e.ev.Child] != nil {
		_ = in.Migrate(e.ev.Child, now) // without a device it is destroyed when the request is told
	}
}

// putLate keeps p until it is due.
func (in *instance) putLate(p latePacket) {
	i := len(in.late)
	for i > 0 && in.late[i-1].due.After(p.due) {
		i--
	}
	in.late = slices.Insert(in.late, i, p)
	if in.lastDue[p.from.in].Before(p.due) {
		in.lastDue[p.from.in] = p.due
	}
	if i == 0 {
		in.lateTimer.Reset(max(p.due.Sub(in.loop.Now()), time.Duration(0)))
	}
}
