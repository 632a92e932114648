package remoting

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
)

// The side that dials sends its hello first. The other side admits it, and sends its hello in turn.
// The dialler admits that one, and confirms it with its next frame, which may be empty. Nothing
// else is sent or taken before. So each side knows that the other one has admitted it when it
// begins to send.

// startGreeting sets up a new connection, and waits for the peer's greeting.
func (l *link) startGreeting(ctx actor.Context, up *reconnect.Up) {
	l.conn = ctx.Sender()
	l.number++
	l.accepting = false
	l.up, l.greeting, l.cause, l.out.posted = up, expecting, nil, tally{}
	l.timer = rdma.After(ctx, greetingTime, &late{l.number})
	if most := up.Established.MaxMessage; most < outbox.FrameBytes {
		l.breakOff(ctx, frame.GoodbyeVersion, fmt.Errorf("the connection takes %d bytes in a message, and a node %d: %w", most, outbox.FrameBytes, ErrProtocol))
		return
	}
	if !up.Accepted {
		l.sayHello(ctx)
	}
}

// isGreeting reports whether it is that connection, and still not open.
func (l *link) isGreeting(number uint64) bool {
	return l.up != nil && l.number == number && l.greeting != open
}

// handleGreeting handles a frame of a connection that is not open.
func (l *link) handleGreeting(ctx actor.Context, m *rdma.Received) {
	switch l.greeting {
	case agreed:
		l.startSending(ctx)
		l.sendWaiting(ctx)
		l.handleParting(ctx, l.in.readRecords(ctx, l.in.newUnread(m)))
	case expecting:
		d := frame.NewReader(m.Data, nil)
		var r frame.Record
		switch ok, err := d.Next(&r); {
		case err != nil:
			l.breakOff(ctx, frame.GoodbyeBadFrame, fmt.Errorf("%w: %w", ErrProtocol, err))
		case ok && r.Kind == frame.KindGoodbye:
			l.handleParting(ctx, partingOf(&r))
		case !ok || r.Kind != frame.KindHello:
			l.breakOff(ctx, frame.GoodbyeNoHello, fmt.Errorf("%w: the first record is %v", ErrProtocol, r.Kind))
		default:
			l.handleHello(ctx, r.Hello)
		}
	case admitting:
		l.handleEarly(ctx, m)
	}
}

// handleEarly handles a frame that arrived during Config.Admit: it can only be a goodbye.
func (l *link) handleEarly(ctx actor.Context, m *rdma.Received) {
	d := frame.NewReader(m.Data, nil)
	var r frame.Record
	if ok, err := d.Next(&r); ok && err == nil && r.Kind == frame.KindGoodbye {
		l.handleParting(ctx, partingOf(&r))
		return
	}
	l.breakOff(ctx, frame.GoodbyeBadFrame, fmt.Errorf("%w: a frame before it was admitted", ErrProtocol))
}

// handleHello judges the peer's hello.
func (l *link) handleHello(ctx actor.Context, h *frame.Hello) {
	l.p.mu.Lock()
	known := l.p.name
	l.p.mu.Unlock()
	l.who = Peer{Name: h.Name, Member: h.Member, Incarnation: h.Incarnation, At: l.up.Established.Peer, Identity: l.up.Established.Identity}
	l.most = min(int(h.MaxMessage), l.up.Established.MaxMessage)
	switch {
	case h.Version != frame.Version:
		l.breakOff(ctx, frame.GoodbyeVersion, fmt.Errorf("%w: version %d, this is %d", ErrProtocol, h.Version, frame.Version))
	case nodeID(h.Name) != l.p.id || known != "" && known != h.Name:
		l.breakOff(ctx, frame.GoodbyeName, fmt.Errorf("%w: it calls itself %q, and is known as %q", ErrProtocol, h.Name, known))
	case !l.host.mayBe(l.who.Identity, h.Name):
		l.breakOff(ctx, frame.GoodbyeName, fmt.Errorf("%w: it calls itself %q, and is %q", ErrProtocol, h.Name, l.who.Identity))
	case l.host.isLocal(h.Name): // its actors would be taken for this node's
		l.breakOff(ctx, frame.GoodbyeName, fmt.Errorf("%w: it calls itself %q, as this node", ErrProtocol, h.Name))
	case h.Incarnation != l.up.Incarnation:
		l.breakOff(ctx, frame.GoodbyeIncarnation, fmt.Errorf("%w: incarnation %d, and it has connected as %d", ErrProtocol, h.Incarnation, l.up.Incarnation))
	case l.most < outbox.FrameBytes:
		l.breakOff(ctx, frame.GoodbyeVersion, fmt.Errorf("%w: it takes %d bytes in a message, and a node %d", ErrProtocol, l.most, outbox.FrameBytes))
	default:
		l.startAdmit(ctx)
	}
}
