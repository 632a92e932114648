package remoting

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Who has dialled says hello first. The other side admits it, and says hello in turn. The dialler
// admits that one, and its next frame, which may be empty, says so. Nothing else is sent or taken
// before. So each side knows that the other one has admitted it when it begins to send.

// greeting is how far a connection is.
type greeting uint8

const (
	absent    greeting = iota // there is no connection
	expecting                 // the peer's hello
	admitting                 // Config.Admit is being asked
	agreed                    // our hello was sent in answer; the peer's next frame opens the link
	open
	refusing // this side ends the connection
)

// farewellTime is how long a goodbye may wait for room.
const farewellTime = time.Second

// begin takes a new connection.
func (l *link) begin(ctx actor.Context, up *reconnect.Up) {
	l.conn = ctx.Sender()
	l.number++
	l.up, l.greeting, l.cause, l.posted = up, expecting, nil, tally{}
	l.timer = rdma.After(ctx, greetingTime, &late{l.number})
	if most := up.Established.MaxMessage; most < frameBytes {
		l.breakOff(ctx, frame.GoodbyeVersion, fmt.Errorf("the connection takes %d bytes in a message, and a node %d: %w", most, frameBytes, ErrProtocol))
		return
	}
	if !up.Accepted {
		l.sayHello(ctx)
	}
}

// greets reports whether it is that connection, and still not open.
func (l *link) greets(number uint64) bool {
	return l.up != nil && l.number == number && l.greeting != open
}

func (l *link) sayHello(ctx actor.Context) {
	n := l.n
	l.say(ctx, &frame.Record{Kind: frame.KindHello, Hello: &frame.Hello{
		Version: frame.Version, Name: n.name, Member: n.cfg.Member, Incarnation: n.cfg.Incarnation, MaxMessage: uint32(n.cfg.MaxMessage),
	}})
}

// say sends a record in a frame of its own, before everything else that waits. nil: an empty frame.
func (l *link) say(ctx actor.Context, r *frame.Record) {
	var w frame.Writer
	if r != nil {
		if err := w.Append(r); err != nil { // Config was checked
			panic(fmt.Sprintf("remoting: BUG: %v", err))
		}
	}
	l.first = append(l.first, w.Bytes())
	l.flush(ctx)
}

// breakOff says goodbye, and ends the connection.
func (l *link) breakOff(ctx actor.Context, code frame.Code, err error) {
	if l.up == nil || l.greeting == refusing {
		return
	}
	l.n.rt.Logger().Warn("remoting: a connection ends", "peer", l.who.Name, "addr", l.up.Established.Peer, "err", err)
	l.refuse(ctx, err)
	rdma.After(ctx, farewellTime, &overdue{l.number})
	l.say(ctx, &frame.Record{Kind: frame.KindGoodbye, Code: code, Reason: err.Error()})
}

// end ends the connection, for a reason of this side's.
func (l *link) end(ctx actor.Context, err error) {
	if l.up == nil || l.greeting == refusing {
		return
	}
	l.refuse(ctx, err)
	l.flush(ctx)
}

func (l *link) refuse(ctx actor.Context, err error) {
	switch {
	case l.greeting == open:
		l.settle()
		l.lost(ctx, err)
	case errors.Is(err, ErrBlocked):
		l.notify(ctx, &NotAdmitted{Peer: l.whom(), Err: err})
	}
	l.greeting, l.cause, l.first, l.send = refusing, err, nil, nil
}

// greet takes a frame of a connection that is not open.
func (l *link) greet(ctx actor.Context, m *rdma.Received) {
	switch l.greeting {
	case agreed:
		l.opened(ctx)
		l.flush(ctx)
		l.read(ctx, l.frame(m))
	case expecting:
		d := frame.NewReader(m.Data, nil)
		var r frame.Record
		switch ok, err := d.Next(&r); {
		case err != nil:
			l.breakOff(ctx, frame.GoodbyeBadFrame, fmt.Errorf("%w: %w", ErrProtocol, err))
		case ok && r.Kind == frame.KindGoodbye:
			l.goodbyeFrom(ctx, &r)
		case !ok || r.Kind != frame.KindHello:
			l.breakOff(ctx, frame.GoodbyeNoHello, fmt.Errorf("%w: the first record is %v", ErrProtocol, r.Kind))
		default:
			l.hello(ctx, r.Hello)
		}
	case admitting:
		l.early(ctx, m)
	}
}

// early takes a frame that has come while Config.Admit is being asked: that can only be a goodbye.
func (l *link) early(ctx actor.Context, m *rdma.Received) {
	d := frame.NewReader(m.Data, nil)
	var r frame.Record
	if ok, err := d.Next(&r); ok && err == nil && r.Kind == frame.KindGoodbye {
		l.goodbyeFrom(ctx, &r)
		return
	}
	l.breakOff(ctx, frame.GoodbyeBadFrame, fmt.Errorf("%w: a frame before it was admitted", ErrProtocol))
}

// hello judges the peer's hello.
func (l *link) hello(ctx actor.Context, h *frame.Hello) {
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
	case !l.n.mayBe(l.who.Identity, h.Name):
		l.breakOff(ctx, frame.GoodbyeName, fmt.Errorf("%w: it calls itself %q, and is %q", ErrProtocol, h.Name, l.who.Identity))
	case l.n.local(h.Name): // its actors would be taken for this node's
		l.breakOff(ctx, frame.GoodbyeName, fmt.Errorf("%w: it calls itself %q, as this node", ErrProtocol, h.Name))
	case h.Incarnation != l.up.Incarnation:
		l.breakOff(ctx, frame.GoodbyeIncarnation, fmt.Errorf("%w: incarnation %d, and it has connected as %d", ErrProtocol, h.Incarnation, l.up.Incarnation))
	case l.most < frameBytes:
		l.breakOff(ctx, frame.GoodbyeVersion, fmt.Errorf("%w: it takes %d bytes in a message, and a node %d", ErrProtocol, l.most, frameBytes))
	default:
		l.admit(ctx)
	}
}

// admitsAtOnce is how many calls of Config.Admit there may be for one peer: those for earlier
// connections may block for ever.
const admitsAtOnce = 4

// admit asks Config.Admit, on a goroutine, because it is the user's and may block.
func (l *link) admit(ctx actor.Context) {
	l.greeting, l.queued = admitting, false
	m := &admitted{number: l.number}
	if l.n.cfg.Admit == nil {
		l.admitted(ctx, m)
		return
	}
	if l.asking == admitsAtOnce {
		l.queued = true
		return
	}
	l.asking++
	l.askAdmit(&m.err, m)
}

func (l *link) admitted(ctx actor.Context, m *admitted) {
	l.asking--
	switch {
	case l.greeting != admitting:
	case l.number != m.number:
		if l.queued { // another connection, which has waited for this
			l.admit(ctx)
		}
	case m.err != nil:
		l.breakOff(ctx, frame.GoodbyeBlocked, fmt.Errorf("%w: %w", ErrBlocked, m.err))
	case l.up.Accepted:
		l.greeting = agreed
		l.sayHello(ctx)
	default:
		l.opened(ctx)
		l.say(ctx, nil)
	}
}

// opened begins to send.
func (l *link) opened(ctx actor.Context) {
	p := l.p
	l.greeting, l.wasOpen = open, true
	l.in.forget() // Allow may think otherwise of another node of that name
	l.stopTimers()
	p.mu.Lock()
	unnamed := p.name == ""
	p.name, p.who, p.most, p.state = l.who.Name, l.who, l.most, linkOpen
	p.mu.Unlock()
	l.count(false)
	l.n.proved(p.id)
	if unnamed {
		ctx.Send(l.conn, &reconnect.Address{Addr: l.who.Name})
	}
	l.notify(ctx, &Connected{Peer: l.who})
	if l.askAgain {
		l.readmit(ctx)
	}
}

// goodbye codes as errors.
func (l *link) goodbyeFrom(ctx actor.Context, r *frame.Record) {
	var err error
	switch r.Code {
	case frame.GoodbyeNoHello:
		err = errLate
	case frame.GoodbyeShutdown:
		err = ErrPeerShutdown
	case frame.GoodbyeBlocked:
		err = ErrBlocked
	default:
		err = ErrProtocol
	}
	l.end(ctx, because(err, r.Reason))
}

// errLate is the cause when greetingTime is over. A device may have lost a first message, which the
// next connection repeats.
var errLate = fmt.Errorf("%w: no hello, or no answer to ours, within %v", ErrProtocol, greetingTime)

// transient reports whether an attempt to connect has not really failed: the other node is there.
func transient(err error) bool {
	for _, e := range []error{errLate, reconnect.ErrSimultaneous, reconnect.ErrReplaced, reconnect.ErrStale, reconnect.ErrUnknownNode, reconnect.ErrTooManyNodes} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.Is(err, unix.EAGAIN)
}
