package remoting

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Receive implements actor.Actor.
func (l *link) Receive(ctx actor.Context) {
	defer l.broken(ctx)
	l.busy = true
	l.react(ctx)
	l.busy = false
}

func (l *link) react(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Received:
		l.received(ctx, m)
	case *flush:
		l.wake(ctx)
	case *rdma.Writable:
		if l.up != nil {
			l.flush(ctx)
		}
	case *reconnect.Up:
		l.begin(ctx, m)
	case *reconnect.Down:
		l.down(ctx, m)
	case *reconnect.Closed:
		l.closed(ctx, m)
	case *reconnect.Refused: // nothing is sent to it
	case *admitted:
		l.admitted(ctx, m)
	case *readmit:
		l.readmit(ctx)
	case *readmitted:
		l.readmitted(ctx, m)
	case *late:
		if l.greets(m.number) {
			l.breakOff(ctx, frame.GoodbyeNoHello, errLate)
		}
	case *impatient:
		l.impatient(ctx)
	case *overdue:
		if l.greets(m.number) {
			ctx.Send(l.conn, &reconnect.Break{Generation: l.up.Generation, Err: l.cause})
		}
	case *paused:
		l.pausing = false
		l.consider(ctx)
	case *readOn:
		l.in.nextTurn()
		l.heed(ctx, l.in.readOn(ctx))
	case *stuck:
		l.stuck(ctx)
	case *spawned:
		l.in.spawned(m)
	case *leave:
		l.leave(ctx, m.timeout)
	case *overtime:
		l.overtime(ctx)
	case *fall:
		l.fall(ctx, m.err)
	case *actor.Started:
		l.start(ctx)
	case *actor.Stopping:
		l.stopping(ctx)
	default:
		l.in.inbox.Receive(ctx)
		l.heed(ctx, l.in.readOn(ctx))
		l.lookBehind(ctx)
	}
}

// received takes a frame.
func (l *link) received(ctx actor.Context, m *rdma.Received) {
	switch l.greeting {
	case open:
		f := l.in.frame(m)
		if l.in.unread.Len() > 0 {
			m.Retain()
			l.in.unread.Push(f)
			return
		}
		l.heed(ctx, l.in.read(ctx, f))
	case absent:
	case refusing: // consumed, it would be received for its sender
		m.Retain()
		l.in.unread.Push(unread{m: m})
	default:
		l.greet(ctx, m)
	}
}

// stuck ends a connection whose peer does not take system messages.
func (l *link) stuck(ctx actor.Context) {
	l.p.mu.Lock()
	still := l.p.stuck // it may have been an earlier connection
	l.p.mu.Unlock()
	if still {
		l.end(ctx, fmt.Errorf("the peer does not take system messages: %w", ErrQueueFull))
	}
}

func (l *link) start(ctx actor.Context) {
	l.self, l.local = ctx.Self(), rdma.LocalOf(ctx)
	l.in.start(ctx)
}

// broken notices that the user's code, which has run on behalf of the peer, has not returned. The
// unread part of its frame is lost, and so the connection has to end.
func (l *link) broken(ctx actor.Context) {
	if !l.busy {
		return
	}
	l.busy = false
	err := errors.New("code that was called for a message has not returned")
	if v := recover(); v != nil {
		err = fmt.Errorf("code that was called for a message has panicked: %v", v)
		defer panic(v)
	}
	if l.up != nil {
		l.end(ctx, err)
	}
}
