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

	asked     *incoming  // the peer's request; nil: none waits for its answer
	peer      peerTerms  // of the request that it came with; zero: it came with none
	handshake *handshake // of a secured connection; nil: none is under way
	who       string     // identity of a secured connection's peer, once it is known

	listened *listening // of a listener

	reading bool // this side makes Reads, as far as the user's ConnParam and the peer's request go
	served  bool // and serves them
	lined   bool // an actor counts what is sent (Line)

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
	life     lifetime

	attempts *attempts      // the Dial or Serve under way; nil: none
	counted  bool           // in Runtime.count
	person   *limits.Person // in Runtime.identities; nil: it is not there
}

// base is the part of an event that names the identifier.
func (it *ident) base() EventBase {
	if it.id == nil {
		return EventBase{}
	}
	return EventBase{ID: it.id.Handle()}
}

// What an identifier gets besides commands, Sends and what Proto.Actor sends.
type (
	// reported is what the device reports.
	reported struct {
		id      *cmid.ID
		ev      cmid.Event
		answers *cmid.Pending // nil: nobody asked
	}
	// lookedUp is the outcome of a look-up that ran off the loop.
	lookedUp struct {
		of   *cmid.Pending // for which it was
		info []cmid.AddrInfo
		err  error
		then func([]cmid.AddrInfo, error)
	}
	// dialTurn begins a step of a Dial that has waited in the dialQueue.
	dialTurn struct{ t *attempts }
	// tick says that a deadline has come.
	tick struct{}
	// refused says that there are refusals to be reported. It is in the mailbox once.
	refused struct{}

	// brokenOff says that the connection was broken off.
	brokenOff struct{}
	// drained says that Close need not wait for its peer any longer. It has a turn of its own,
	// because the connection still handles the message that brought the last credit.
	drained struct{}
	// goodbyeLeft says that the goodbye has left. It has a turn of its own, because the connection
	// still handles its completion.
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
func (*dialTurn) Lane() mailbox.Lane      { return mailbox.Event }
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
		return m.answers.Command.Op()
	}
	return m.ev.Kind()
}

// owner is the actor that gets an identifier's events, in one FIFO for every kind of mailbox.
type owner struct {
	pid     *actor.PID       // nil: nobody
	box     *mailbox.Mailbox // one of ours; nil: some other process
	near    bool             // box runs on the identifier's loop
	handler bool             // we have spawned it, and stop it
}
