package actor

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
)

// An identifier's mailbox and the memory for its answers are bounded, whatever is sent and by
// however many goroutines. There is room for:
//
//   - Limits.Mailbox messages, most of them Sends. A further Send is refused: its buffer is free
//     again when the sender goes on, and only a count is kept here. It is answered behind what
//     waits in the mailbox, because answering first would let a flood keep its own connection from
//     sending.
//   - commandRoom commands more, in their sender's order. Further ones, and messages that are not
//     commands, are answered on the sender's goroutine.
//   - commandRoom commands more that end the identifier. When one is refused, others of the kind
//     are already queued.
//   - a cancel for each goroutine that waits in Ask, and what this package posts itself, once each.
//
// While answers to refused Sends wait for the same actor they are merged (piles). Of other answers
// there is one for each message that was admitted, or that was answered on its sender's goroutine.

// commandRoom is how many commands have room where Sends have none, and how many may be begun and
// not answered.
const commandRoom = 1024

// ends reports whether cmd ends the identifier, and is answered by that end.
func ends(cmd Command) bool {
	switch cmd.(type) {
	case *cmid.DestroyID, *Close:
		return true
	}
	return false
}

// nothing answers a command that is a nil pointer.
func (it *ident) nothing(cmd Command) Event {
	err := fmt.Errorf("a nil *%s: %w", rdmaName(fmt.Sprintf("%T", cmd)[1:]), unix.EINVAL)
	return &cmid.CommandFailed{FailureBase: it.failure(nil, "receive", err)}
}

// missing reports whether cmd is a nil pointer.
func missing(cmd Command) bool {
	v := reflect.ValueOf(cmd)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// refusals counts the Sends for which the mailbox had no room. Any goroutine.
type refusals struct {
	gate sync.RWMutex // held by who refuses; for good, once Closed is due
	mu   sync.Mutex
	list []refusal // in the order of the first of each sender
	of   map[sender]int
}

// refusal is the Sends of one sender that were refused.
type refusal struct {
	sender       *actor.PID
	sends, bytes int
}

// sender identifies a sender, as a key of a map.
type sender struct {
	address, id string
	request     uint32
}

// add counts a Send, and reports whether it is the first since the list was taken.
func (r *refusals) add(from *actor.PID, bytes int) (first bool) {
	key := sender{from.GetAddress(), from.GetId(), from.GetRequestId()}
	r.mu.Lock()
	defer r.mu.Unlock()
	i, ok := r.of[key]
	if !ok {
		if r.of == nil {
			r.of = make(map[sender]int)
		}
		i = len(r.list)
		r.of[key] = i
		r.list = append(r.list, refusal{sender: from})
	}
	r.list[i].sends++
	r.list[i].bytes += bytes
	return !ok && i == 0
}

// take hands out the list.
func (r *refusals) take() (list []refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.list, r.of = r.list, nil, nil
	return list
}

// seal lets nothing more be refused. Not ok: a message is being refused at this moment.
func (r *refusals) seal() (ok bool) { return r.gate.TryLock() }

// Overflow takes what the mailbox's data lane has no room for, on the posting goroutine.
func (it *ident) Overflow(msg any, over int32) (admit bool) {
	_, m, from := actor.UnwrapEnvelope(msg)
	switch m := m.(type) {
	case *lastMessage, *refused, *cancelled:
		return true
	case *poisonPill: // one that finds no room has others before it
		return over <= 2*commandRoom
	case actor.MessageBatch, Event, *actor.DeadLetterResponse: // which are not answered
		return false
	case *Send:
		admit = !m.usable() && over <= commandRoom // who is answered so
	case Command:
		admit = over <= commandRoom || ends(m) && over <= 2*commandRoom
	}
	if admit {
		return true
	}
	if !it.refusals.gate.TryRLock() {
		it.box.Refuse(msg) // Closed was sent, or is about to be
		return false
	}
	defer it.refusals.gate.RUnlock()
	if s, ok := m.(*Send); ok && s.usable() {
		s.out.Take()
		first := it.refusals.add(from, s.Len())
		s.out.Recycle()
		if first {
			it.box.PostUserMessage(&refused{})
		}
		return false
	}
	it.refuseCommand(m, from)
	return false
}

// refuseCommand answers a command that finds no room, or a message that is not a command, on the
// posting goroutine. It touches nothing that belongs to the loop, so the answer lacks the
// identifier's state.
func (it *ident) refuseCommand(m any, from *actor.PID) {
	f := cmid.FailureBase{Op: "receive", Err: errNoPlace}
	f.Status = -int32(unix.ENOBUFS)
	if cmd, ok := m.(Command); ok && !missing(cmd) {
		f.Op, f.Command = opName(cmd), cmd
	}
	var ev Event = &cmid.CommandFailed{FailureBase: f}
	if _, ok := f.Command.(oneSided); ok {
		ev = &AccessError{f}
	}
	env := &actor.MessageEnvelope{Message: ev, Sender: it.box.PID()}
	it.refusals.mu.Lock()
	to := it.owner
	it.refusals.mu.Unlock()
	if from != nil && (to.pid == nil || !it.rt.registry.Same(from, to.pid)) {
		to = owner{pid: from}
	}
	switch {
	case to.pid == nil:
	case to.near:
		to.box.Post(mailbox.Event, env) // the owner's one FIFO
	case to.box != nil:
		to.box.PostUserMessage(env)
	default:
		it.rt.sys.Root.Send(to.pid, env)
	}
}

// errNoPlace is why the mailbox refuses something.
var errNoPlace = fmt.Errorf("the mailbox has no room: %w (%w)", ErrQueueFull, unix.ENOBUFS)

// setOwner changes the owner, also for messages that are being refused on other goroutines.
func (it *ident) setOwner(o owner) {
	it.refusals.mu.Lock()
	it.owner, it.onward = o, nil
	it.refusals.mu.Unlock()
	it.publish()
}

// reportRefused answers the Sends that the mailbox had no room for.
func (it *ident) reportRefused() {
	list := it.refusals.take()
	for _, r := range list {
		it.unsent += uint64(r.sends)
		it.refuseSends(r.sender, r.sends, r.bytes, ErrQueueFull, errNoPlace)
	}
	if c := it.conn; c != nil && c.Flows() && len(list) > 0 {
		c.Awake()
		c.Pump() // there may be room already
	}
}

// refuseSends answers refused Sends of one sender. kind is the class of err: answers of one class
// are merged.
func (it *ident) refuseSends(from *actor.PID, sends, bytes int, kind, err error) {
	p := pile{it.owner.box, kind}
	if !it.owns(from) {
		p.box = it.rt.registry.Find(from)
	}
	if p.box != nil && it.piles.add(p, sends, bytes) {
		return
	}
	ev := &SendFailed{FailureBase: it.failure(nil, "send", err), Bytes: bytes, Sends: sends}
	ev.History = nil // a thousand of them say the same
	if p.box != nil {
		it.piles.begin(p, ev)
	}
	it.reply(from, ev)
}
