package actor

import (
	"fmt"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

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
	// parted says that the goodbye has left. It has a turn of its own, because the device may be in
	// the middle of something.
	parted struct{}

	// wind asks an identifier to close itself because of Shutdown.
	wind struct{}
	// abort destroys it: its context has ended, or the runtime's patience.
	abort struct{ cause error }
	// cancelled says that who has sent a command has given up: there is no other cancel than
	// destroy. It queues behind the command, which may have been answered by then. The answer was
	// in vain: nobody else may know of what it has made.
	cancelled struct{ cause error }
	// poisoned is what a PoisonPill comes to: a Close that nobody is answered.
	poisoned struct{}
	// epitaph is the last message in the mailbox of a stopped actor.
	epitaph struct{}
)

func (*reported) Lane() mailbox.Lane  { return mailbox.Event }
func (*lookedUp) Lane() mailbox.Lane  { return mailbox.Event }
func (*tick) Lane() mailbox.Lane      { return mailbox.Event }
func (*brokenOff) Lane() mailbox.Lane { return mailbox.Event }
func (*drained) Lane() mailbox.Lane   { return mailbox.Event }
func (*parted) Lane() mailbox.Lane    { return mailbox.Event }
func (*wind) Lane() mailbox.Lane      { return mailbox.Control }
func (*abort) Lane() mailbox.Lane     { return mailbox.Control }

// carried is what the watchdog names: an event, and not what brings it.
func carried(msg any) any {
	if m, ok := msg.(*reported); ok {
		return m.ev
	}
	return msg
}

// cause is what a transition is put down to: the device's event, or the command when the event is
// only our answer to it.
func (m *reported) cause() fmt.Stringer {
	if m.answers != nil && int(m.ev.Kind()) >= states.NumKernelKinds {
		return m.answers.Op()
	}
	return m.ev.Kind()
}
