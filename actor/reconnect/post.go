package reconnect

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// Post hands s to the connection now, if the connection has room for it and no other message waits.
// Then its fate is reported as that of every *Send. Otherwise s stays the caller's: after
// rdma.ErrQueueFull *rdma.Writable follows, ErrDown means that the generation is over. A posted
// message is not sent in another generation, unless it is Idempotent. Post is for an owner that is
// OnLoop, in its Receive; for every other one it is ErrDown. While the owner receives Up or
// *rdma.Received, Post always finds no room: the connection is in the middle of delivering.
func (u *Up) Post(s *Send) error {
	l := u.link
	if l == nil || l.state != LinkUp || l.generation != u.Generation {
		return ErrDown
	}
	o := &l.out
	switch {
	case l.closing:
		return ErrClosing
	case !s.reserveMessage():
		return fmt.Errorf("not made by NewSend, or sent before: %w", unix.EINVAL)
	case s.Message.Len() > o.maxSend:
		return tooLarge(s.Message, o.maxSend)
	case l.delivering || o.waitingCount() > 0:
		o.full = true
		return errQueueFull
	}
	if o.tagged == 0 {
		o.collectFates() // messages that are only counted may have no other occasion
	}
	m := message{send: s.Message, tag: s.Tag, tagged: !s.Quiet, idempotent: s.Idempotent}
	if !o.postMessage(&m) {
		o.full = true
		return errQueueFull
	}
	_, _ = s.takeMessage()
	o.queue.Push(m)
	o.posted++
	if o.tagged == 1 && m.tagged {
		o.line.Awake()
	}
	return nil
}

// Unsettled returns how many of the messages that were sent in this generation, in whatever way,
// the peer is not known to have consumed: the last ones. It is called as Post is. Not ok: the
// generation is over, though Down may not have been delivered yet. Down.Counts has the numbers
// then.
func (u *Up) Unsettled() (n int, ok bool) {
	l := u.link
	switch {
	case l == nil || l.state != LinkUp || l.generation != u.Generation:
		return 0, false
	case !l.out.line.Acknowledged():
		return 0, true
	}
	return l.out.posted - int(l.out.line.Delivered()-l.out.settled), true
}

// endDelivery ends a delivery of the connection. A Post that found no room because of it is
// retried.
func (l *link) endDelivery(ctx actor.Context) {
	l.delivering = false
	if l.out.full && l.state == LinkUp && l.out.waitingCount() == 0 {
		ctx.Send(ctx.Self(), &flush{})
	}
}
