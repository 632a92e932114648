package iwarp

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sockets"
)

var _ cmid.Migrator = (*driverID)(nil)

// detached is an identifier that is on no loop. The identifiers of its undelivered requests go with
// it, and so do the sockets of all of them. No loop watches these sockets. Data of their peers
// waits in the kernel.
type detached struct {
	from   *instance
	ids    []*driverID // the first is the detached one
	events []event     // not delivered yet
	conns  []*conn
}

// Detach takes the identifier off its loop. A connection with a queue pair stays on the queue
// pair's loop.
func (id *driverID) Detach() (cmid.DetachedInstance, error) {
	in := id.in
	d := &detached{from: in, ids: []*driverID{id}}
	in.events = append(in.events[:in.first], slices.DeleteFunc(in.events[in.first:], func(ev event) bool {
		if !slices.Contains(d.ids, ev.id) {
			return false
		}
		d.events = append(d.events, ev)
		if child, ok := ev.Child.(*driverID); ok {
			d.ids = append(d.ids, child)
		}
		return true
	})...)
	for _, id := range d.ids {
		delete(in.ids, id.h)
		if id.conn != nil && id.conn.qp == nil {
			d.conns = append(d.conns, id.conn)
		}
	}
	if l := id.lis; l != nil {
		for c := in.setups.oldest; c != nil; c = c.newer {
			if c.arriving.lis == l {
				d.conns = append(d.conns, c)
			}
		}
		l.leaveLoop()
	}
	for _, c := range d.conns {
		c.leaveLoop()
	}
	return d, nil
}

// Attach puts the identifier and its sockets on other's loop. That loop then reads the data that
// has arrived in between.
func (d *detached) Attach(other cmid.Instance) error {
	to, ok := other.(*instance)
	switch {
	case !ok || to.drv != d.from.drv || to.closed:
		return fmt.Errorf("iwarp: not an open channel of this device: %w", unix.EINVAL)
	case to != d.from && to.conns+len(d.conns) > to.cfg.MaxConns:
		return fmt.Errorf("iwarp: the device has %d connections, and MaxConns is the most: %w", to.conns, unix.ENOMEM)
	}
	if err := d.joinLoop(to); err != nil {
		return err
	}
	for _, id := range d.ids {
		id.in = to
		to.ids[id.h] = id
	}
	for _, ev := range d.events {
		ev.id.queueEvent(ev.DriverEvent)
	}
	now := to.loop.Now()
	for _, c := range d.conns {
		if c.arriving != nil {
			to.setups.push(c, to.cfg.MaxSetups)
		}
		c.applyCoreState(now)
	}
	return nil
}

// joinLoop registers the sockets: all or none.
func (d *detached) joinLoop(to *instance) error {
	for i, c := range d.conns {
		if err := c.joinLoop(to); err != nil {
			for _, c := range d.conns[:i] {
				c.leaveLoop()
			}
			return err
		}
	}
	if l := d.ids[0].lis; l != nil {
		if err := l.joinLoop(to); err != nil {
			for _, c := range d.conns {
				c.leaveLoop()
			}
			return err
		}
	}
	return nil
}

// Destroy closes the sockets, which are on no loop. A peer that waits for a Reply is rejected:
// without an answer it would retry.
func (d *detached) Destroy() {
	sys := d.from.drv.newStack() // those of the loops belong to other goroutines
	for _, c := range d.conns {
		c.giveUp(sys)
	}
	for _, id := range d.ids {
		id.dead = true
		if id.lis != nil {
			_ = sys.Close(id.lis.fd)
		}
		if id.fd >= 0 {
			_ = sys.Close(id.fd)
			id.fd = -1
		}
		if c := id.conn; c != nil && c.qp != nil {
			c.identDestroyed(c.in.loop.Now())
		}
		d.from.drv.ports.releasePort(id.binding)
		id.lis, id.conn, id.binding = nil, nil, nil
	}
}

// giveUp ends a connection that is on no loop. It uses nothing that belongs to an instance.
func (c *conn) giveUp(sys sockets.Stack) {
	c.id, c.arriving = nil, nil
	if c.fd >= 0 {
		c.core.SetPool(nil)
		c.core.Abort(time.Time{}) // no deadline of it is observed
		if c.core.Pending() {
			// an empty socket has room for it, and a broken socket needs none
			reply := c.core.Gather(nil)
			if n, _ := sys.Send(c.fd, reply, 0); n > 0 && c.currentTap() != nil {
				c.currentTap().addWritten(c, n, reply)
			}
		}
		c.captureClose(false)
		_ = sys.Close(c.fd)
		c.fd = -1
	}
	c.phase = phClosed
}

// leaveLoop removes c from its loop. Until it joins another one, its socket is neither read nor
// written and it has no timers.
func (c *conn) leaveLoop() {
	in := c.in
	if c.fd >= 0 {
		_ = c.reg.Remove() // the fd is open, so this cannot fail
		c.reg = nil
		in.conns--
	}
	c.timer.release()
	if c.dirty {
		c.dirty = false
		in.dirty = slices.DeleteFunc(in.dirty, func(d *conn) bool { return d == c })
	}
	c.requestDone() // frees its set-up slot
}

// joinLoop puts c on a loop after leaveLoop.
func (c *conn) joinLoop(to *instance) error {
	if c.fd >= 0 {
		reg, err := to.loop.Add(c.fd, c.events(), c)
		if err != nil {
			return err
		}
		c.reg = reg
		to.conns++
	}
	c.in = to
	c.core.SetPool(&to.pool)
	return nil
}

// leaveLoop removes the listening socket from its loop. Connections wait in the kernel's queue.
func (l *listener) leaveLoop() {
	if l.paused {
		l.resumeAccepting()
	}
	l.pause = nil      // it is stopped
	_ = l.reg.Remove() // the fd is open, so this cannot fail
	l.reg = nil
}

func (l *listener) joinLoop(to *instance) error {
	reg, err := to.loop.Add(l.fd, eventloop.Readable, l)
	l.reg = reg
	return err
}
