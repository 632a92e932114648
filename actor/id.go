package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// ident is the actor of one rdma_cm_id. It belongs to its loop's goroutine. Everything that happens
// to it arrives through its mailbox, except for the messages of an established connection.
type ident struct {
	commandTable // contains sends, which contains outbox, which contains endpoint

	tenancy   tenancy
	handshake *handshake // a secured connection's; nil: none is under way

	release func() bool // ends the watch of cfg.Context
	closed  func(error) // called after Closed, with its error; nil: not called

	person *limits.Person // in Runtime.identities; nil: it is not there
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
	dialTurn struct{ a *attempts }
	// tick reports that a deadline has passed.
	tick struct{}
	// refused reports that refusals are to be answered. It is in the mailbox once.
	refused struct{}

	// brokenOff reports that a connection was broken off.
	brokenOff struct{ conn *datapath.Conn }
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

// carriedMessage returns the message that the watchdog names: an event, and not the message that
// brings it.
func carriedMessage(msg any) any {
	if m, ok := msg.(*reported); ok {
		return m.ev
	}
	return msg
}

// transitionCause returns the cause of a transition: the device's event, or the command when the
// event is only this package's answer to it.
func (m *reported) transitionCause() fmt.Stringer {
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
