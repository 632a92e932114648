package iwarp

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp/core"
)

var _ cmid.StrangerCounter = (*instance)(nil)

// Strangers counts the connections that ended without an MPA Request. Any goroutine.
func (in *instance) Strangers() uint64 { return in.strangers.Load() }

// stranger notes that c has ended without a Request. What err quotes of the peer is short and
// escaped.
func (c *conn) stranger(err error) {
	in := c.in
	in.strangers.Add(1)
	n, ok := in.drv.strangers.log(in.loop.Now())
	if !ok {
		return
	}
	// Posted: in the middle of a connection's end a logger that panics would leave it half done.
	_ = in.loop.Post(func() {
		in.loop.Logger().Info("iwarp: a connection without an MPA Request",
			"device", in.cfg.Device, "local", c.local, "peer", c.peer, "err", err, "unlogged before", n)
	})
}

// evict closes c, to make room for another one.
func (c *conn) evict() {
	c.close()
	if c.lis != nil && !c.over { // else it was counted when it was refused
		c.stranger(&core.Error{Op: "request", Errno: unix.EBUSY, Text: "no complete Request yet, and others need the room"})
	}
}
