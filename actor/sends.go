package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
)

// sends passes an identifier's Sends to the connection, and answers those that are refused or have
// failed. It also refuses the commands for which the mailbox has no room: see refusals.go.
type sends struct {
	outbox
	refusals refusals
	piles    piles
	unsent   uint64 // refused for lack of a connection or of room
}

// submitSend passes a message to the connection, or refuses it.
func (ss *sends) submitSend(s *Send, sender *actor.PID) {
	if ss.answerMisused(s, sender) {
		return
	}
	s.out.Take()
	s.sender = sender
	if ss.conn == nil || ss.isEnding() {
		ss.unsent++
		ss.refuseSends(sender, 1, s.Len(), datapath.ErrNotConnected, datapath.ErrNotConnected)
		s.out.Recycle()
		return
	}
	ss.conn.Submit(s.out.As(s.Notify, s.Renew))
}

// answerMisused answers a Send that was not made by NewSend or was sent before. It must not get
// into the pool.
func (ss *sends) answerMisused(s *Send, sender *actor.PID) bool {
	if s.isUsable() {
		return false
	}
	f := ss.failureBase(nil, "send", fmt.Errorf("not made by NewSend, or sent before: %w", unix.EINVAL))
	ss.answerSender(sender, &SendFailed{FailureBase: f, Sends: 1})
	return true
}

func (ss *sends) SendRefused(s *datapath.Outgoing, kind, err error) {
	ss.refuseSends(s.Of.(*Send).sender, 1, s.Len(), kind, err)
}

// refuseSends answers refused Sends of one sender. kind is the class of err: answers of one class
// are merged.
func (ss *sends) refuseSends(from *actor.PID, sends, bytes int, kind, err error) {
	p := pile{ss.owner.box, kind}
	if !ss.isOwner(from) {
		p.box = ss.l.rt.registry.Find(from)
	}
	if p.box != nil && ss.piles.addToPile(p, sends, bytes) {
		return
	}
	ev := &SendFailed{FailureBase: ss.failureBase(nil, "send", err), Bytes: bytes, Sends: sends}
	ev.History = nil // it would be the same in a thousand of them
	if p.box != nil {
		ss.piles.beginPile(p, ev)
	}
	ss.answerSender(from, ev)
}

func (ss *sends) Sent(s *datapath.Outgoing) {
	ss.answerSender(s.Of.(*Send).sender, &Sent{ss.eventBase(), s.Len()})
}

func (ss *sends) SendFailed(s *datapath.Outgoing, err error) {
	ev := &SendFailed{FailureBase: ss.failureBase(nil, "send", err), Bytes: s.Len(), Sends: 1}
	ev.History = nil // it would be the same in a thousand of them
	sender := s.Of.(*Send).sender
	s.Recycle()
	ss.answerSender(sender, ev)
}

func (ss *sends) Writable() { ss.notifyOwner(&Writable{ss.eventBase()}) }

// Overflow handles a message that has no room in the mailbox's data lane, on the posting goroutine.
func (ss *sends) Overflow(msg any, over int32) (admit bool) {
	_, m, from := actor.UnwrapEnvelope(msg)
	m = asPointer(m)
	switch m := m.(type) {
	case *lastMessage, *refused, *cancelled:
		return true
	case *poisonPill: // one that finds no room has others before it
		return over <= 2*commandRoom
	case actor.MessageBatch, Event, *actor.DeadLetterResponse: // these are not answered
		return false
	case *Send:
		admit = !m.isUsable() && over <= commandRoom // it is then answered in turn, as misused
	case Command:
		admit = over <= commandRoom || endsID(m) && over <= 2*commandRoom
	}
	if admit {
		return true
	}
	if !ss.refusals.gate.TryRLock() {
		ss.box.Refuse(msg) // Closed was sent, or is about to be
		return false
	}
	defer ss.refusals.gate.RUnlock()
	if s, ok := m.(*Send); ok && s.isUsable() {
		s.out.Take()
		first := ss.refusals.add(from, s.Len())
		s.out.Recycle()
		if first {
			ss.box.PostUserMessage(&refused{})
		}
		return false
	}
	ss.refuseCommand(m, from)
	return false
}

// reportRefused answers the Sends for which the mailbox had no room.
func (ss *sends) reportRefused() {
	list := ss.refusals.take()
	for _, r := range list {
		ss.unsent += uint64(r.sends)
		ss.refuseSends(r.sender, r.sends, r.bytes, ErrQueueFull, errNoPlace)
	}
	if c := ss.conn; c != nil && c.Flows() && len(list) > 0 {
		c.Awake()
		c.Pump() // there may be room already
	}
}

// refuseCommand answers a command that finds no room, or a message that is not a command, on the
// posting goroutine. It touches nothing that belongs to the loop, so the answer lacks the
// identifier's state.
func (ss *sends) refuseCommand(m any, from *actor.PID) {
	f := cmid.FailureBase{Op: "receive", Err: errNoPlace}
	f.Status = -int32(unix.ENOBUFS)
	if cmd, ok := m.(Command); ok && !isNilCommand(cmd) {
		f.Op, f.Command = opName(cmd), cmd
	}
	var ev Event = &cmid.CommandFailed{FailureBase: f}
	if _, ok := f.Command.(oneSided); ok {
		ev = &AccessError{f}
	}
	env := &actor.MessageEnvelope{Message: ev, Sender: ss.box.PID()}
	ss.mu.Lock()
	to := ss.owner
	ss.mu.Unlock()
	if from != nil && (to.pid == nil || !ss.l.rt.registry.Same(from, to.pid)) {
		to = owner{pid: from}
	}
	switch {
	case to.pid == nil:
	case to.near:
		to.box.Post(mailbox.Event, env) // the owner's one FIFO
	case to.box != nil:
		to.box.PostUserMessage(env)
	default:
		ss.l.rt.sys.Root.Send(to.pid, env)
	}
}

// errNoPlace is the error of a message that the mailbox refuses.
var errNoPlace = fmt.Errorf("the mailbox has no room: %w (%w)", ErrQueueFull, unix.ENOBUFS)
