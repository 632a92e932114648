package remoting

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// sendWaiting sends waiting frames, as far as the connection has room.
func (l *link) sendWaiting(ctx actor.Context) {
	if !l.out.postFirst() {
		return
	}
	switch l.greeting {
	case open: // after a goodbye nothing follows
		if !l.leaving && l.out.postPackets(ctx) {
			l.leaveIfSent(ctx)
		}
	case refusing:
		ctx.Send(l.conn, &reconnect.Break{Generation: l.up.Generation, Err: l.cause})
	default:
		l.startTimeout(ctx) // waiting frames may become dead letters soon
	}
}

// sendRecord sends a record in a separate frame, before all waiting frames. nil: an empty frame.
func (l *link) sendRecord(ctx actor.Context, r *frame.Record) {
	var w frame.Writer
	if r != nil {
		if err := w.Append(r); err != nil { // Config was checked
			panic(fmt.Sprintf("remoting: BUG: %v", err))
		}
	}
	l.out.first = append(l.out.first, w.Bytes())
	l.sendWaiting(ctx)
}

func (l *link) sayHello(ctx actor.Context) {
	h := l.host
	l.sendRecord(ctx, &frame.Record{Kind: frame.KindHello, Hello: &frame.Hello{
		Version: frame.Version, Name: h.name, Member: h.cfg.Member, Incarnation: h.cfg.Incarnation, MaxMessage: uint32(h.cfg.MaxMessage),
	}})
}

// farewellTime is how long a goodbye may wait for room.
const farewellTime = time.Second

// breakOff sends a goodbye, and ends the connection.
func (l *link) breakOff(ctx actor.Context, code frame.Code, err error) {
	if l.up == nil || l.greeting == refusing {
		return
	}
	l.host.rt.Logger().Warn("remoting: a connection ends", "peer", plain.Quote(l.who.Name), "addr", l.up.Established.Peer, "err", err)
	l.startRefusing(ctx, err)
	rdma.After(ctx, farewellTime, &overdue{l.number})
	l.sendRecord(ctx, &frame.Record{Kind: frame.KindGoodbye, Code: code, Reason: err.Error()})
}

// handleParting ends the connection, if there is a reason.
func (l *link) handleParting(ctx actor.Context, why *parting) {
	switch {
	case why == nil:
	case why.said && l.host.leaving.Load() && !l.bye && l.greeting == open:
		l.parted = why // leave is about to arrive, with its time-out
	case why.said && l.bye && l.greeting == open:
		// Both leave. The peer still reads, as this side does: after the drain it is known what was
		// received.
		if !l.leaving {
			l.leaving, l.cause = true, why.err
		}
		ctx.Send(l.conn, &rdma.Close{Timeout: max(l.due.Sub(l.local.Now()), 1)})
	case why.said:
		l.failConn(ctx, why.err)
	default:
		l.breakOff(ctx, why.code, why.err)
	}
}

// failConn ends the connection, for a reason of this side's.
func (l *link) failConn(ctx actor.Context, err error) {
	if l.up == nil || l.greeting == refusing {
		return
	}
	l.startRefusing(ctx, err)
	l.sendWaiting(ctx)
}

func (l *link) startRefusing(ctx actor.Context, err error) {
	switch {
	case l.greeting == open:
		l.out.settlePosted()
		l.failOnLoss(ctx, err)
	case errors.Is(err, ErrBlocked):
		l.report.publishEvent(ctx, &NotAdmitted{Peer: l.knownPeer(), Err: err})
	}
	l.greeting, l.cause, l.out.first, l.out.send = refusing, err, nil, nil
}

// leaveIfSent sends a goodbye when everything was sent. The peer ends the connection when it has
// received that, and so confirms all earlier frames.
func (l *link) leaveIfSent(ctx actor.Context) {
	if !l.bye || l.leaving || l.greeting != open {
		return
	}
	l.p.mu.Lock()
	waits := l.p.waitsLocked()
	l.p.mu.Unlock()
	if waits { // for targets that the peer meters
		return
	}
	l.leaving, l.cause = true, ErrShutdown
	l.sendRecord(ctx, &frame.Record{Kind: frame.KindGoodbye, Code: frame.GoodbyeShutdown, Reason: "the node shuts down"})
}
