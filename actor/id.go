package actor

import (
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// ident is the actor of one rdma_cm_id. It belongs to its loop's goroutine. Everything that happens
// to it arrives through its mailbox, except for the messages of an established connection.
type ident struct {
	rt  *Runtime
	l   *loop
	log *slog.Logger
	cfg IDConfig
	pid *actor.PID
	box *mailbox.Mailbox
	ctx actor.Context // from Started on

	id    *cmid.ID // nil until Started, and when it could not be made
	owner owner
	conn  *datapath.Conn
	// the actor to which the owner has last forwarded a message; nil: none
	onward *mailbox.Mailbox

	asked     *incoming  // the peer's request; nil: none waits for its answer
	peer      peerTerms  // from the request that created it; zero: no request did
	handshake *handshake // a secured connection's; nil: none is under way
	who       string     // identity of a secured connection's peer, once it is known

	listened *listening // a listener's state

	timer   *eventloop.Timer  // of the earliest deadline; nil until the first
	options []*cmid.SetOption // repeated when Dial needs a new identifier
	release func() bool       // ends the watch of cfg.Context
	closed  func(error)       // called after Closed, with its error; nil: not called
	unsent  uint64            // sends refused for lack of a connection or of room
	home    *home             // its memory's; nil: none was needed yet

	cmd       Command    // the command being executed, if it is not answered
	cmdSender *actor.PID // its sender

	refusals refusals
	piles    piles
	life     lifetime

	attempts *attempts      // the Dial or Serve under way; nil: none
	person   *limits.Person // in Runtime.identities; nil: it is not there

	state   states.State
	reading bool // this side makes Reads: the ConnParam and the peer's request allow it
	served  bool // this side serves Reads, as above
	lined   bool // an actor counts the sent messages (Line)
	counted bool // in Runtime.count
	// the peer was given a key to write with, perhaps before there is a connection
	notifiable bool
}

// base returns the part of an event that names the identifier.
func (it *ident) base() EventBase {
	if it.id == nil {
		return EventBase{}
	}
	return EventBase{ID: it.id.Handle()}
}

// The messages to an identifier besides commands, Sends and Proto.Actor's.
type (
	// reported is an event of the device.
	reported struct {
		id      *cmid.ID
		ev      cmid.Event
		answers *cmid.Pending // nil: the event answers no command
	}
	// lookedUp is the outcome of a look-up that ran off the loop.
	lookedUp struct {
		of   *cmid.Pending // the command that needs it
		info []cmid.AddrInfo
		err  error
		then func([]cmid.AddrInfo, error)
	}
	// dialTurn begins a step of a Dial that has waited in the dialQueue.
	dialTurn struct{ t *attempts }
	// tick reports that a deadline has passed.
	tick struct{}
	// refused reports that refusals are to be answered. It is in the mailbox once.
	refused struct{}

	// brokenOff reports that the connection was broken off.
	brokenOff struct{}
	// drained reports that Close need not wait for its peer any longer. It has a separate turn,
	// because the connection still handles the message that brought the last credit.
	drained struct{}
	// goodbyeLeft reports that the goodbye has left. It has a separate turn, because the connection
	// still handles its completion.
	goodbyeLeft struct{}

	// shutdownAsked asks an identifier to close itself because of Shutdown.
	shutdownAsked struct{}
	// abort destroys it: its context has ended, or Shutdown waits no longer.
	abort struct{ cause error }
	// cancelled reports that the sender of a command has given up. It destroys the identifier,
	// because there is no other way to cancel. It queues behind the command, which may have been
	// answered by then. Even so the identifier is destroyed: no other actor may know of the
	// command's result.
	cancelled struct{ cause error }
	// poisonPill takes the place of a PoisonPill: a Close without an answer.
	poisonPill struct{}
	// lastMessage is the last message in the mailbox of a stopped actor.
	lastMessage struct{}
)

func (*reported) Lane() mailbox.Lane      { return mailbox.Event }
func (*lookedUp) Lane() mailbox.Lane      { return mailbox.Event }
func (*dialTurn) Lane() mailbox.Lane      { return mailbox.Event }
func (*tick) Lane() mailbox.Lane          { return mailbox.Event }
func (*brokenOff) Lane() mailbox.Lane     { return mailbox.Event }
func (*drained) Lane() mailbox.Lane       { return mailbox.Event }
func (*goodbyeLeft) Lane() mailbox.Lane   { return mailbox.Event }
func (*shutdownAsked) Lane() mailbox.Lane { return mailbox.Control }
func (*abort) Lane() mailbox.Lane         { return mailbox.Control }

// carried returns the message that the watchdog names: an event, and not the message that brings
// it.
func carried(msg any) any {
	if m, ok := msg.(*reported); ok {
		return m.ev
	}
	return msg
}

// cause returns the cause of a transition: the device's event, or the command when the event is
// only this package's answer to it.
func (m *reported) cause() fmt.Stringer {
	if m.answers != nil && int(m.ev.Kind()) >= states.NumKernelKinds {
		return m.answers.Command.Op()
	}
	return m.ev.Kind()
}

// owner is the actor that gets an identifier's events, in one FIFO for every kind of mailbox.
type owner struct {
	pid     *actor.PID       // nil: none
	box     *mailbox.Mailbox // an OnLoop or OffLoop actor's; nil: another kind of process
	near    bool             // box runs on the identifier's loop
	handler bool             // the runtime has spawned it, and stops it
}
