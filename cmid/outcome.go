package cmid

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// finish ends the command that the driver had answered with ErrPending.
func (p *Pending) finish(err error) {
	if p == nil || p.answer == nil {
		return
	}
	if ev := p.outcomeEvent(p.id.history.mark(), err); ev != nil {
		p.id.ch.sink(p.id, ev, p)
	}
}

// outcomeEvent returns the answer to a command that the driver has finished, nil if an event is the
// answer.
func (p *Pending) outcomeEvent(before mark, err error) Event {
	switch {
	case answeredByEvent(p.Command) && !p.awaits:
		return nil // it came first
	case p.Command.Op() == states.OpDestroyID:
		return p.id.closedEvent(err)
	case err != nil:
		p.awaits = false
		return p.failedEvent(before, err)
	}
	ev := p.successEvent()
	if ev != nil {
		p.awaits = false
	}
	return ev
}

// successEvent builds the answer to a command the driver has executed, nil when an event will bring
// it.
func (p *Pending) successEvent() Event {
	id := p.id
	base := EventBase{ID: id.handle}
	switch c := p.Command.(type) {
	case *BindAddr:
		in := id.Info()
		return &Bound{EventBase: base, Local: in.Local, Device: in.Device}
	case *Listen:
		return &Listening{EventBase: base, Local: id.Info().Local, Backlog: int(id.backlog)}
	case *Establish:
		in := id.Info()
		return &Established{EventBase: base, Local: in.Local, Peer: in.Peer}
	case *Accept:
		if id.flavor&states.UD == 0 {
			return nil
		}
		// no event follows for a datagram identifier: the kernel has none
		in := id.Info()
		return &Established{EventBase: base, Local: in.Local, Peer: in.Peer}
	case *Disconnect:
		if id.state == states.Disconnecting {
			return nil
		} // else it answered the peer's, or the connection had ended
	case *LeaveMulticast:
		if j := id.commands.waitingJoin(func(j *JoinMulticast) bool { return j.Addr.Equal(c.Addr) }); j != nil {
			j.failJoin("left before it was joined", unix.ECANCELED)
		}
	default:
		if answeredByEvent(c) {
			return nil
		}
	}
	return &Done{EventBase: base, Command: p.Command}
}

// failedEvent sets the state in which the kernel leaves the identifier, and builds the answer. A
// command that failed immediately and changed nothing is not kept in the history.
func (p *Pending) failedEvent(from mark, err error) Event {
	id, op := p.id, p.Command.Op()
	next, v := states.Step(id.Flavor(), id.state, states.CommandFailed(op))
	switch {
	case op == states.OpReject && id.state == states.Failed:
		// nothing was sent: the request still waits, and may be accepted
		next, v = from.state, states.Allow
	case v == states.Allow && op == states.OpResolveAddr && id.Info().Local.Port() == 0:
		next = states.Idle // not even the bind inside has succeeded
	}
	if v == states.Allow {
		if next == from.state && id.history.undo(from) {
			id.state = next
		}
		id.enterState(next)
	}
	f := id.failureBase(p.Command, err)
	f.State = from.state
	return &CommandFailed{f}
}

// refuse answers a command that never reached the driver.
func (p *Pending) refuse(why *states.Reason) {
	errno := unix.Errno(why.Errno)
	f := p.id.failureBase(p.Command, errno)
	f.Err = &refusal{why.Text, errno}
	f.Legal = why.Legal
	p.Answer(&CommandFailed{f})
}

// failJoin reports that no event will answer a join.
func (p *Pending) failJoin(why string, errno unix.Errno) {
	p.awaits = false
	f := p.id.failureBase(p.Command, errno)
	f.Err = &refusal{why, errno}
	p.id.ch.sink(p.id, &CommandFailed{f}, p)
}
