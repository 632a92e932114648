package datapath

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// On a device that does not ask for receives (verbs.DeviceAttr.AsksForReceives) every message must find one: on iWARP one that does not
// ends its connection, on InfiniBand its sender tries again and again. So a connection has a receive queue of its own, which nobody
// else's messages can use up, and as many receives in it as its peer may send messages, from before the peer can know of it until it
// ends. The memory of a message that was consumed is posted again before the peer is told of it.

// receives is how many receives a connection posts beforehand.
func (t *Terms) receives() int {
	if t.Mode == ModeMessages {
		return t.Credits + wire.ControlReceives
	}
	return t.Credits
}

// reserve posts n receives.
func (c *Conn) reserve(n int) error {
	if c.dom.own {
		c.pool.Arena.bytes, c.pool.Arena.chunks = n*c.pool.Arena.size, n // one region
	}
	for range n {
		b, err := c.pool.Arena.Get()
		if err != nil {
			limit := c.l.RecvBudget.most
			return &ResourceError{Device: c.Device.Verbs.Name(), What: "bytes of receive buffers", Need: n * c.pool.Arena.size, Limit: limit, Err: err}
		}
		if err := c.pool.post(c.QP, b); err != nil {
			c.pool.Arena.put(b)
			return fmt.Errorf("post_recv on %s: %w", c.Device.Verbs.Name(), err)
		}
	}
	return nil
}

// give takes a receive buffer back that has been read. One of the connection's own is posted again.
func (c *Conn) give(b *chunk) {
	c.l.Shares.gave(c, b)
	if b.pool != nil {
		b.pool.copies--
		c.l.RecvBudget.unuse(b.size())
		c.l.RecvBudget.give(b.size())
		if c.Over() {
			c.dom.vanish()
			c.Device.vanish()
		}
		return
	}
	if b.stock != nil {
		c.Arrivals.gave(b)
		if c.Over() {
			c.dom.vanish()
			c.Device.vanish()
		}
		return
	}
	if c.pool.srq == nil && !c.Over() {
		err := c.pool.post(c.QP, b)
		if err == nil {
			return
		}
		c.refused(verbs.Recv, err) // there is room for it: nothing but the queue pair's end speaks against it
	}
	b.arena.put(b)
	if c.Over() {
		c.dom.vanish()
		c.Device.vanish()
	}
}

// ResourceError says that a device, or the half of Limits.ReceiveMemory, cannot hold what a
// connection needs from its beginning. Connect and Accept fail with it; WithMessages says how much
// they need. errors.Is: ENOMEM.
type ResourceError struct {
	Device      string
	What        string // of which there is not enough
	Need, Limit int    // for one connection, and for all together
	Err         error  // may be nil
}

func (e *ResourceError) Error() string {
	s := fmt.Sprintf("%s cannot hold another connection that needs %d %s; the limit is %d: grant fewer credits or smaller messages (WithMessages)",
		e.Device, e.Need, e.What, e.Limit)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives ENOMEM.
func (e *ResourceError) Unwrap() error { return unix.ENOMEM }
