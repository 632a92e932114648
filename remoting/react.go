package remoting

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Receive implements actor.Actor.
func (l *link) Receive(ctx actor.Context) {
	defer l.recoverUserCode(ctx)
	l.handleMessage(ctx)
}

func (l *link) handleMessage(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Received:
		l.handleReceived(ctx, m)
	case *flush:
		l.sendOrDial(ctx)
	case *rdma.Writable:
		if l.up != nil {
			l.sendWaiting(ctx)
		}
	case *reconnect.Up:
		l.startGreeting(ctx, m)
	case *reconnect.Down:
		l.handleDown(ctx, m)
	case *reconnect.Closed:
		l.handleClosed(ctx, m)
	case *reconnect.Refused: // nothing is sent to it
	case *admitted:
		l.handleAdmitted(ctx, m)
	case *readmit:
		l.startReadmit()
	case *late:
		if l.isGreeting(m.number) {
			l.breakOff(ctx, frame.GoodbyeNoHello, errLate)
		}
	case *impatient:
		l.handleTimeout(ctx)
	case *overdue:
		if l.isGreeting(m.number) {
			ctx.Send(l.conn, &reconnect.Break{Generation: l.up.Generation, Err: l.cause})
		}
	case *paused:
		l.pausing = false
		l.decideConnect(ctx)
	case *readOn:
		l.in.nextTurn()
		l.handleParting(ctx, l.in.readOn(ctx))
	case *stuck:
		l.failStuck(ctx)
	case *spawned:
		l.in.handleSpawned(m)
	case *leave:
		l.closeWhenSent(ctx, m.timeout)
	case *overtime:
		l.failUnsent(ctx)
	case *fall:
		l.failLink(ctx, m.err)
	case *actor.Started:
		l.startLink(ctx)
	case *actor.Stopping:
		l.handleStopping(ctx)
	default:
		l.in.inbox.Receive(ctx)
		l.handleParting(ctx, l.in.readOn(ctx))
		l.lookBehind(ctx)
	}
}

// handleReceived handles a frame.
func (l *link) handleReceived(ctx actor.Context, m *rdma.Received) {
	switch l.greeting {
	case open:
		f := l.in.newUnread(m)
		if l.in.unread.Len() > 0 {
			m.Retain()
			l.in.unread.Push(f)
			return
		}
		l.handleParting(ctx, l.in.readRecords(ctx, f))
	case absent:
	case refusing: // consumed, it would be received for its sender
		m.Retain()
		l.in.unread.Push(unread{m: m})
	default:
		l.handleGreeting(ctx, m)
	}
}

// failStuck ends a connection whose peer does not take system messages.
func (l *link) failStuck(ctx actor.Context) {
	l.p.mu.Lock()
	still := l.p.stuck // it may have been an earlier connection
	l.p.mu.Unlock()
	if still {
		l.failConn(ctx, fmt.Errorf("the peer does not take system messages: %w", ErrQueueFull))
	}
}

func (l *link) startLink(ctx actor.Context) {
	l.self, l.local = ctx.Self(), rdma.LocalOf(ctx)
	l.in.startInbox(ctx)
}

// recoverUserCode notices that the user's code, which has run on behalf of the peer, has panicked.
// The unread part of its frame is lost, and so the connection has to end.
func (l *link) recoverUserCode(ctx actor.Context) {
	v := recover()
	if v == nil {
		return
	}
	defer panic(v)
	if l.up != nil {
		l.failConn(ctx, fmt.Errorf("code that was called for a message has panicked: %v", v))
	}
}
