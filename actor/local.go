package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Local gives an OnLoop actor access to the loop that it runs on. It is for packages that stand
// between connections and their users, such as rpc, rdmanet and actor/reconnect; other actors need
// only After.
//
// It is a small value that an actor may keep for as long as it lives. Its methods are called in the
// actor's Receive. An actor that is not OnLoop gets the zero Local; each method's comment describes
// the effect then.
type Local struct {
	l    *loop
	self *actor.PID
}

// LocalOf returns the calling actor's Local. It is called in Receive.
func LocalOf(ctx actor.Context) Local {
	if x := mailbox.LoopOf(ctx); x != nil {
		return Local{x.Context.(*loop), ctx.Self()}
	}
	return Local{}
}

// Now returns the time on the loop's clock, which After uses too and which is virtual in tests.
// Without a loop it is time.Now.
func (l Local) Now() time.Time {
	if l.l == nil {
		return time.Now()
	}
	return l.l.el.Now()
}

// Err returns why the loop accepts no identifiers: ErrShutdown once Shutdown has begun, or an
// *eventloop.GoexitError. nil: it accepts them, or there is no loop.
func (l Local) Err() error {
	switch {
	case l.l == nil:
		return nil
	case l.l.rt.closing.Load():
		return ErrShutdown
	}
	return l.l.failErr()
}

// Woke reports that the actor has just woken a goroutine that works for it, by a channel or a
// WaitGroup. The loop then yields when the turn's events are delivered, and once more before it
// sleeps, so that the goroutine does not wait until Go's scheduler notices it. Messages to actors
// need none of this. Without a loop it does nothing.
func (l Local) Woke() {
	if l.l != nil {
		l.l.el.Handoff()
	}
}

// Task names work that an actor does on behalf of others, such as a handler that it calls. Any
// number of actors may use one.
type Task struct{ r eventloop.Runnable }

// NewTask makes a Task. Any goroutine may call it.
func NewTask(name string) *Task { return &Task{task(name)} }

// task is a name that the watchdog can ask for.
type task string

// LoopName returns the name.
func (t task) LoopName() string { return string(t) }

// Run has nothing to do: tasks are not queued.
func (task) Run(int) (more bool) { return false }

// Do calls do. If that blocks the loop, the watchdog reports the Task t instead of the message that
// the actor has received. do may panic. Without a loop Do just calls do.
func (l Local) Do(t *Task, do func()) {
	if l.l != nil {
		defer l.l.el.Blame(l.l.el.Blame(&t.r))
	}
	do()
}

// Has reports whether the identifier h lives on the actor's loop.
func (l Local) Has(h Handle) bool { return l.l != nil && l.l.ch.ID(h) != nil }

// Line gives the actor the Line of the connection h, whose Established it has received. ok is false
// when h has no data path or lives on another loop, and when the Local has no loop.
func (l Local) Line(h Handle) (line *Line, ok bool) {
	it := l.identOf(h)
	if it == nil || it.conn == nil {
		return nil, false
	}
	it.lined = true
	return &Line{it.conn}, true
}

// Relay returns a Relay from this actor to another one of any kind. Not ok: the Local has no loop.
func (l Local) Relay(to *actor.PID) (r *Relay, ok bool) {
	if l.l == nil {
		return nil, false
	}
	return &Relay{l: l.l, self: l.self, to: l.l.rt.newOwner(l.l, to)}, true
}

// Line is the sending half of a connection for an OnLoop owner on the connection's own loop. There
// is no mailbox between the two, so that the owner knows of each message whether the device has it.
// It is for actors that stand between connections and their users (package reconnect). Its methods
// are called in the owner's Receive, but not while the owner receives a message or an event of this
// very connection, except for Writable. A Line may be kept beyond the connection's end: its counts
// do not change then.
type Line struct{ c *datapath.Conn }

// Post passes s to the device, if device and peer have room for it now. Then s belongs to the
// connection, and the counts Posted and Delivered show its fate. Otherwise s stays the caller's,
// and Writable follows when trying again may help, unless the connection ends. Take must have been
// called for s, unless Copy returned it, and s must not be larger than Established.MaxMessage.
func (l *Line) Post(s *Send) (posted bool) {
	s.sender = nil
	return l.c.TryPost(s.out.As(s.Notify, s.Renew))
}

// Awake asks for a Writable as soon as the device has completed something, or the peer has consumed
// something.
func (l *Line) Awake() { l.c.Awake() }

// Posted returns how many messages were handed to the device.
func (l *Line) Posted() uint64 { return l.c.Posted() }

// Delivered returns how many of them the peer is known to have consumed: the first ones.
func (l *Line) Delivered() uint64 { return l.c.Delivered() }

// Acknowledged reports whether the peer reports the messages that it has consumed. A raw
// connection's peer does not.
func (l *Line) Acknowledged() bool { return l.c.Acknowledged() }

// ChallengeTime is how long a peer has to answer Challenge.
const ChallengeTime = datapath.ChallengeTime

// Challenge asks the peer for a sign of life now, because there is reason to believe that it is
// gone. If none arrives within ChallengeTime, the connection ends with a *LostError, whatever its
// Keepalive. If one arrives, answered is called, on the loop. False: the peer cannot be asked (a
// raw connection), is being asked already, or is ending the connection.
func (l *Line) Challenge(answered func()) (asked bool) { return l.c.Challenge(answered) }

// Take reserves s for the caller to Post: it cannot be sent in another way afterwards. Not ok: it
// was not made by NewSend, or was sent before. Any goroutine that owns s may call it.
func (s *Send) Take() (ok bool) {
	if !s.isUsable() {
		return false
	}
	s.out.Take()
	return true
}

// Copy returns another Send of the same bytes, to be sent once more. s must not have been posted.
// Any goroutine that owns s may call it.
func (s *Send) Copy() *Send { return NewSend(s.out.Bytes()) }

// Relay sends to another actor for an OnLoop actor that stands between connections and their user.
// Events and received messages go in one FIFO, as from an identifier to its owner. Their Sender is
// the actor that made the Relay. Its methods are called in that actor's Receive.
type Relay struct {
	l    *loop
	self *actor.PID
	to   owner
}

// Near reports whether the other actor is on the same loop as this one.
func (r *Relay) Near() bool { return r.to.near }

// Send sends msg, behind everything that was sent before.
func (r *Relay) Send(msg any) {
	r.to.sendEnvelope(r.l, &actor.MessageEnvelope{Message: msg, Sender: r.self}, true)
}

// HandOn passes on the message that is being received, without a copy. The other actor has it as if
// the connection had sent it there (Received).
func (r *Relay) HandOn(m *Received) {
	if r.to.box == nil {
		r.Send(m.Clone())
		return
	}
	m.addRef()
	if b := m.from; b != nil && b.l == r.l {
		b.onward = r.to.box
	}
	env := &m.env
	if m.refs.Load() > 2 { // it is on its way to others, in its own envelope
		env = new(actor.MessageEnvelope)
	}
	r.to.deliverReferenced(m, env, r.self)
}
