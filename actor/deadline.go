package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// handleDeadlines handles the deadlines that have passed.
func (it *ident) handleDeadlines() {
	if it.isEnding() {
		return
	}
	now := it.l.el.Now()
	if in := it.asked; in.isOverdue(now) {
		err := fmt.Errorf("the request was not answered in time: %w", unix.ETIMEDOUT)
		it.refuseUnanswered(wire.RefusedLate)
		if it.handshake.isUnreported() {
			it.requestAnswered(fateUnauthenticated)
			it.l.rt.log.Warn("rdma: a peer did not authenticate itself in time", "id", it.id.Handle(), "peer", in.r.Peer, "local", in.r.Local)
		}
		it.requestAnswered(fateTimedOut)
		it.destroyID(err)
		return
	}
	for _, p := range it.id.Pending() {
		if !p.Due.IsZero() && !p.Due.After(now) {
			it.failTimedOut(p)
			return
		}
	}
	if it.closeOverdue(now) {
		it.destroyID(fmt.Errorf("close: the peer has not %s in time: %w", it.closeAwaits(), unix.ETIMEDOUT))
		return
	}
	it.resetTimer()
}

// failTimedOut answers a command that took too long. The identifier is lost: the device's only
// cancel is destroy.
func (it *ident) failTimedOut(p *cmid.Pending) {
	h := it.id.Handle()
	f := it.timeoutFailure(p.Command)
	p.Answer(f)
	if !it.isEnding() && it.id.Handle() == h { // else Dial continues with another address
		it.destroyID(f)
	}
}

// timeoutFailure returns the failure that the device would have reported in time.
func (t *commandTable) timeoutFailure(cmd Command) Failure {
	f := t.failureBase(cmd, opName(cmd), fmt.Errorf("no answer in time: %w", unix.ETIMEDOUT))
	f.Remedy = tryAgain
	if t.id.State() == states.Connecting {
		f.Remedy = "the peer is away or busy, or the listener there does not speak RDMA, such as a web server; " + tryAgain
	}
	switch cmd.(type) {
	case *Dial:
		if t.attempts != nil && t.attempts.waitsForTurn() {
			f.Err = fmt.Errorf("this side was busy and did not continue in time: %w", unix.ETIMEDOUT)
			return &cmid.CommandFailed{FailureBase: f}
		}
		switch t.id.State() {
		case states.AddrQuery:
			return &cmid.AddrError{FailureBase: f}
		case states.RouteQuery:
			return &cmid.RouteError{FailureBase: f}
		case states.Connecting:
			return &cmid.Unreachable{FailureBase: f}
		}
		return &cmid.AddrInfoError{FailureBase: f}
	case *cmid.ResolveAddr:
		return &cmid.AddrError{FailureBase: f}
	case *cmid.ResolveRoute, *cmid.SetIBPath:
		return &cmid.RouteError{FailureBase: f}
	case *cmid.JoinMulticast:
		return &cmid.MulticastError{FailureBase: f}
	case *cmid.Connect, *cmid.Accept:
		return &cmid.Unreachable{FailureBase: f}
	case *cmid.GetAddrInfo, *cmid.ResolveIBService:
		return &cmid.AddrInfoError{FailureBase: f}
	}
	return &cmid.CommandFailed{FailureBase: f}
}
