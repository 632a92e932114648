package reconnect

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// Post hands the connection s at once, if it has room for it and no other message waits. Then its
// fate is reported as that of every *Send. Otherwise s stays the caller's: ErrQueueFull says that
// *rdma.Writable will come, ErrDown that the generation is over. What was posted is not sent in
// another generation, unless it is Idempotent. Post is for an owner that is OnLoop, in its Receive;
// for every other one it is ErrDown. While the owner receives Up or *rdma.Received, Post always
// finds no room: the connection is in the middle of delivering.
func (u *Up) Post(s *Send) error {
	l := u.link
	if l == nil || l.state != LinkUp || l.generation != u.Generation {
		return ErrDown
	}
	o := &l.out
	switch {
	case l.closing:
		return ErrClosing
	case !s.reserve():
		return fmt.Errorf("not made by NewSend, or sent before: %w", unix.EINVAL)
	case s.Message.Len() > o.maxSend:
		return tooLarge(s.Message, o.maxSend)
	case l.delivering || o.waiting() > 0:
		o.full = true
		return ErrQueueFull
	}
	if o.tagged == 0 {
		o.collect() // nobody else does for messages that are only counted, if nothing comes
	}
	m := message{send: s.Message, tag: s.Tag, tagged: !s.Quiet, idempotent: s.Idempotent}
	if !o.hand(&m) {
		o.full = true
		return ErrQueueFull
	}
	_, _ = s.take()
	o.queue.Push(m)
	o.posted++
	if o.tagged == 1 && m.tagged {
		o.line.Awake()
	}
	return nil
}

// Unsettled is how many of the messages that were sent in this generation, in whatever way, the
// peer is not known to have consumed: the last ones. It is called as Post is. Not ok: the
// generation is over, though Down may not have come yet. Its Counts say what Unsettled cannot.
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

// delivered ends what the connection has delivered. A Post in the middle of it finds room now.
func (l *link) delivered(ctx actor.Context) {
	l.delivering = false
	if l.out.full && l.state == LinkUp && l.out.waiting() == 0 {
		ctx.Send(ctx.Self(), &flush{})
	}
}
