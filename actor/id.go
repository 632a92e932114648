package actor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// ident is the actor of one rdma_cm_id. It belongs to its loop's goroutine. Everything that
// happens to it comes through its mailbox, except for the messages of an established connection.
type ident struct {
	rt  *Runtime
	l   *loop
	log *slog.Logger
	cfg IDConfig
	pid *actor.PID
	box *mailbox.Mailbox
	ctx actor.Context // from Started on

	id    *cmid.ID // nil until Started, and when it could not be made
	state states.State
	owner owner
	conn  *datapath.Conn
	// to whom the owner has handed on messages last; nil: nobody
	onward *mailbox.Mailbox

	// Of an identifier that came with a request.
	hand      *handshake // of a secured connection that is not established for the owner; nil: none
	features  secure.Features
	promised  int    // bytes of a receive, by the hello; 0: it is not made
	who       string // of a secured connection, once it is known
	dialled   string // what Dial calls the other side
	host      string // that Dial names; "": it has named none
	shake     shake  // what is counted of the handshake
	request   bool   // nobody has answered it
	listener  cmid.Handle
	via       *listening // the listener's; nil: it came without one
	requestBy time.Time
	peerMode  datapath.Mode
	peerHello wire.Hello
	peerReads cmid.ConnParam // what its request says about Reads: ours and its own

	listened *listening // of a listener

	reading bool // this side makes Reads, as far as the user's ConnParam and the peer's request go
	served  bool // and serves them
	lined   bool // an actor counts what is sent (Line)

	asked   []*asked
	timer   *eventloop.Timer  // of the earliest deadline; nil until the first
	options []*cmid.SetOption // for Dial, which may need a new identifier
	release func() bool       // ends the watch of cfg.Context
	closed  func(error)       // is called after Closed, with its error; nil: nobody waits
	unsent  uint64            // sends that met no connection, or no room
	home    *home             // of its memory; nil: it has had no use for one
	// the peer was given a key to write with, perhaps before there is a connection
	notifiable bool

	cmd       Command    // that is being executed and not answered
	cmdSender *actor.PID // whose it is
	inside    bool       // a message is being received

	refusals refusals
	piles    piles

	endReported bool // Disconnected or DeviceRemoval was reported
	// what goes on when the goodbye has left; nil: nothing waits for it
	afterGoodbye func()
	goodbyeTimer *eventloop.Timer // of it; nil: the same
	leaving      *cmid.Disconnect // waits for it; nil: none

	composed bool           // a Dial or Serve is under way
	counted  bool           // in Runtime.count
	person   *limits.Person // in Runtime.identities; nil: it is not there
	life     identLife
	cause    error // why it ended; nil: it was asked for
}

// asked is a command that has no answer yet.
type asked struct {
	cmd    Command
	wire   Command // what goes to the device in its place, with the hello; nil: itself
	sender *actor.PID
	then   func(Event) // part of a composite: gets the answer, instead of the sender
	due    time.Time   // zero: no deadline
}

// do has the identifier execute a command, and waits for its answer.
func (it *ident) do(a *asked) {
	if err := it.exposes(a.cmd); err != nil {
		it.refuse(a, err)
		return
	}
	it.asked = append(it.asked, a)
	it.begin(a)
}

// begin is do for a command that waits already.
func (it *ident) begin(a *asked) {
	cmd := a.cmd
	if a.wire != nil {
		cmd = a.wire
	}
	if o := it.rt.commands; o != nil {
		o.Begun(it.pid, it.id.Handle(), a.cmd)
	}
	ev := it.id.Do(cmd)
	it.moved(cmd.Op())
	if ev != nil {
		it.answer(cmd, ev)
		return
	}
	it.setDeadline(a)
}

// take removes a command from those that wait: the user's, or what it is on the wire. If one value
// was sent several times, that is the last: it is refused at once, while the device has the first.
func (it *ident) take(cmd Command) *asked {
	for i, a := range slices.Backward(it.asked) {
		if a.cmd == cmd || a.wire == cmd {
			it.asked = append(it.asked[:i], it.asked[i+1:]...)
			it.rearm()
			return a
		}
	}
	return nil
}

// answer ends a command that waits. The answer goes to its sender, to the composite that it is
// part of, or to the owner.
func (it *ident) answer(cmd Command, ev Event) {
	a := it.take(cmd)
	if o := it.rt.commands; o != nil && a != nil {
		o.Answered(it.pid, it.id.Handle(), a.cmd, ev)
	}
	switch {
	case a == nil:
		it.notify(ev)
	case a.then != nil:
		a.then(ev)
	default:
		if a.wire != nil {
			restore(ev, a.cmd)
		}
		if lifecycle(ev) && !it.owns(a.sender) {
			it.notify(ev) // the owner always gets these
		}
		it.reply(a.sender, ev)
		if f, ok := ev.(*cmid.CommandFailed); ok && a.wire != nil && it.id.State() == states.Failed && !it.cfg.Manual {
			it.destroy(f) // an Accept whose peer had gone: nothing else helps, as after Unreachable
		}
	}
}

// lifecycle reports whether the owner gets ev also when another actor's command caused it.
func lifecycle(ev Event) bool {
	switch ev.(type) {
	case *cmid.Established, *cmid.Disconnected, *cmid.DeviceRemoval:
		return true
	}
	return false
}

// moved reports a transition, if there was one. cause is a command (states.Op) or the device's
// event (states.Kind).
func (it *ident) moved(cause fmt.Stringer) {
	now := it.id.State()
	if now == it.state {
		return
	}
	from := it.state
	it.state = now
	it.l.flight.Transition(it.l.el.Now(), uint64(it.base().ID), from, now)
	it.publish()
	if o := it.rt.cfg.Observer; o != nil {
		o.Transition(it.pid, it.id.Handle(), from, now)
	}
	if it.log.Enabled(context.Background(), slog.LevelDebug) {
		it.log.Debug("rdma: "+now.String(), it.logKeys(cause, "from", from.String())...)
	}
}

func (it *ident) logKeys(op fmt.Stringer, more ...any) []any {
	in := it.id.Info()
	return append([]any{
		"id", uint64(it.id.Handle()), "state", it.id.State().String(), "op", op.String(),
		"local", in.Local.String(), "peer", in.Peer.String(), "device", in.Device,
	}, more...)
}

// legal reports whether the state machine allows cmd now. cmid.ID.Do checks that for every
// command. legal is only for what has to be done before Do and cannot be undone: a queue pair, the
// hello's terms, a request's deadline, a goodbye. A command that is not legal goes to Do all the
// same, which words the refusal.
func (it *ident) legal(cmd Command) bool {
	_, v := states.Step(it.id.Flavor(), it.id.State(), states.Requested(cmd.Op()))
	return v == states.Allow
}

// answered notes that the request was answered, and how.
func (it *ident) answered(how fate) {
	if it.request {
		it.request = false
		it.via.count(how)
		it.l.requests.Free(it.listener)
		it.rearm()
	}
}

// base is the part of an event that names the identifier.
func (it *ident) base() EventBase {
	if it.id == nil {
		return EventBase{}
	}
	return EventBase{ID: it.id.Handle()}
}

// notify sends the owner an event.
func (it *ident) notify(ev Event) {
	it.noteEvent(ev)
	if o := it.rt.cfg.Observer; o != nil {
		o.Event(it.pid, ev)
	}
	it.owner.send(it.l, &actor.MessageEnvelope{Message: ev, Sender: it.pid})
}

// reply sends an answer to the sender of a command, or to the owner when the command has none.
// What the owner gets goes through its FIFO.
func (it *ident) reply(sender *actor.PID, ev Event) {
	if it.owns(sender) {
		it.notify(ev)
	} else {
		it.noteEvent(ev)
		if o := it.rt.cfg.Observer; o != nil {
			o.Event(it.pid, ev)
		}
		to := it.rt.newOwner(it.l, sender)
		to.send(it.l, &actor.MessageEnvelope{Message: ev, Sender: it.pid})
	}
	if sender == it.cmdSender {
		it.cmd = nil
	}
}

// owns reports whether what is meant for sender goes to the owner.
func (it *ident) owns(sender *actor.PID) bool {
	return sender == nil || it.owner.pid != nil && it.rt.registry.Same(sender, it.owner.pid)
}

// identLife is how far an identifier is on its way. It only goes forward.
//
//	alive ──► ending ──► gone ──► closed
//	  └───────────────────▲
//
// Identifiers that could not be made, and those that the device has closed by itself, go straight
// from alive to gone. Two facts are kept apart from these steps, because they may come before or
// after them. One is whether the owner knows of the connection's end (ident.endReported): a Manual
// owner learns of it while the identifier is alive, others when it is ending. The other is the
// goodbye that the next step waits for (ident.afterGoodbye). A connection has its own lifetime:
// connState.
type identLife uint8

const (
	// identAlive takes commands.
	identAlive identLife = iota
	// identEnding is being destroyed: commands are answered with ENOENT, what ends it with Closed.
	identEnding
	// identGone has nothing in the device that its actor waits for: it was given back, could not
	// be made, or is left to the loop (loop.orphans).
	identGone
	// identClosed has reported Closed, the last event. Messages now go to a stopped actor.
	identClosed
)

func (s identLife) String() string {
	return [...]string{"alive", "ending", "gone", "closed"}[s]
}

// setLife takes the next step. In builds that look for misuse a step back panics.
func (it *ident) setLife(to identLife) {
	if overwrite.On && to <= it.life {
		panic("rdma: an identifier that is " + it.life.String() + " cannot become " + to.String())
	}
	it.life = to
	it.publish()
}

// ending reports whether it is being destroyed, or was.
func (it *ident) ending() bool { return it.life != identAlive }

// gone reports whether the device has nothing of it that its actor waits for.
func (it *ident) gone() bool { return it.life >= identGone }

// What an identifier gets besides commands, Sends and what Proto.Actor sends.
type (
	// reported is what the device reports.
	reported struct {
		id      *cmid.ID
		ev      cmid.Event
		answers cmid.Command
	}
	// lookedUp is the outcome of a look-up that ran off the loop.
	lookedUp struct {
		cmd  Command // for which it was
		info []cmid.AddrInfo
		err  error
		then func([]cmid.AddrInfo, error)
	}
	// tick says that a deadline has come.
	tick struct{}
	// refused says that there are refusals to be reported. It is in the mailbox once.
	refused struct{}

	// brokenOff says that the connection was broken off.
	brokenOff struct{}
	// drained says that Close need not wait for its peer any longer. It has a turn of its own,
	// because the device may be in the middle of the read that has brought the last credit.
	drained struct{}
	// goodbyeLeft says that the goodbye has left. It has a turn of its own, because the device may
	// be in the middle of something.
	goodbyeLeft struct{}

	// shutdownAsked asks an identifier to close itself because of Shutdown.
	shutdownAsked struct{}
	// abort destroys it: its context has ended, or Shutdown waits no longer.
	abort struct{ cause error }
	// cancelled says that the sender of a command has given up. It destroys the identifier,
	// because there is no other way to cancel. It queues behind the command, which may have been
	// answered by then. Even so the identifier is destroyed: nobody else may know of what the
	// command has made.
	cancelled struct{ cause error }
	// poisonPill takes the place of a PoisonPill: a Close without an answer.
	poisonPill struct{}
	// lastMessage is the last message in the mailbox of a stopped actor.
	lastMessage struct{}
)

func (*reported) Lane() mailbox.Lane      { return mailbox.Event }
func (*lookedUp) Lane() mailbox.Lane      { return mailbox.Event }
func (*tick) Lane() mailbox.Lane          { return mailbox.Event }
func (*brokenOff) Lane() mailbox.Lane     { return mailbox.Event }
func (*drained) Lane() mailbox.Lane       { return mailbox.Event }
func (*goodbyeLeft) Lane() mailbox.Lane   { return mailbox.Event }
func (*shutdownAsked) Lane() mailbox.Lane { return mailbox.Control }
func (*abort) Lane() mailbox.Lane         { return mailbox.Control }

// carried is what the watchdog names: an event, and not the message that brings it.
func carried(msg any) any {
	if m, ok := msg.(*reported); ok {
		return m.ev
	}
	return msg
}

// cause is what has caused a transition: the device's event, or the command when the event is only
// our answer to it.
func (m *reported) cause() fmt.Stringer {
	if m.answers != nil && int(m.ev.Kind()) >= states.NumKernelKinds {
		return m.answers.Op()
	}
	return m.ev.Kind()
}
