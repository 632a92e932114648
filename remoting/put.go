package remoting

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// outgoing is a message on its way out, not encoded.
type outgoing struct {
	target *actor.PID
	header actor.ReadonlyMessageHeader
	msg    any
	sender *actor.PID
	future actor.Process // the sender's, if it is a future of this node's
	room   *peer         // where room is reserved for it; nil: nowhere
	place  outbox.Place  // ... there
}

// verdict is the result of queueing a message.
type verdict uint8

const (
	accepted  verdict = iota
	elsewhere         // the peer has ended: another one takes it
	full              // there is no room
	refused           // with the error as the reason
)

// queueMessage queues a user message. m is the message that is encoded in r.
func (p *peer) queueMessage(r *frame.Record, m *outgoing) (v verdict, err error) {
	size := r.Size()
	p.mu.Lock()
	first := m.room == p || !p.user.Waits(r.Target)
	p.unreserveLocked(m)
	if v, err = p.putLocked(r, m, size, first); v == accepted {
		p.unlockAndWake()
		return v, nil
	}
	p.releaseLocked() // its reserved room goes to the next one
	p.mu.Unlock()
	return v, err
}

// putLocked queues a message of this size. first: no message waits for room before it.
func (p *peer) putLocked(r *frame.Record, m *outgoing, size int, first bool) (verdict, error) {
	switch {
	case p.ended:
		return elsewhere, nil
	case size > outbox.FrameBytes && p.most > 0 && size > p.most:
		return refused, fmt.Errorf("about %d bytes, and the peer takes %d (its Config.MaxMessage): %w", size, p.most, ErrTooLarge)
	case size > p.user.Limit():
		return refused, fmt.Errorf("about %d bytes, and the queue has %d (Config.Queue): %w", size, p.user.Limit(), ErrTooLarge)
	case m.future != nil && p.state == linkBroken:
		return refused, unreachableWith(p.failure)
	case !first || !p.user.Room(r.Target, size):
		return full, nil
	case m.future != nil && !p.futures.Room(p.host.hasProcess):
		return refused, fmt.Errorf("%d futures wait: %w", tables.FuturesMost, ErrQueueFull)
	}
	switch {
	case m.future != nil:
		r.Sender.ID, r.Sender.Request = p.futures.Next(), uint32(p.host.rt.Scheduler().Uint64())
	case r.Sender.ID != "" && r.Sender.Address == "":
		if proc, ok := p.host.sys.ProcessRegistry.GetLocal(m.sender.Id); ok && !p.grants.Sent(m.sender.Id, proc, Reach.accessBit(), p.host.hasProcess) {
			return refused, fmt.Errorf("the actors that the peer may answer take %d MiB: %w", tables.GrantBytes>>20, ErrQueueFull)
		}
	}
	if err := p.user.Append(r, size); err != nil {
		return refused, err
	}
	p.counts.Sent++
	if m.future != nil {
		p.futures.Add(tables.Request{Target: m.target, Future: m.sender, Process: m.future, Packet: p.user.Number(), Token: r.Sender.Request})
	}
	return accepted, nil
}

// putSystem queues a record of our own, if before allows it, which is called first, with the lock.
func (p *peer) putSystem(r *frame.Record, before func(*peer) bool) (queued, ended bool) {
	p.mu.Lock()
	switch {
	case p.ended:
		p.mu.Unlock()
		return false, true
	case before != nil && !before(p):
		p.mu.Unlock()
		return false, false
	}
	p.putSystemLocked(r)
	p.unlockAndWake()
	return true, false
}

// putSystemLocked queues a system record of this node. If there is no room for it, an open link has
// to end its connection, because the peer would wait for the record forever.
func (p *peer) putSystemLocked(r *frame.Record) {
	switch {
	case p.system.Room(r.Size()):
		// a name that no frame takes is none of the peer's actors'
		_ = p.system.Append(r, r.Size())
	case !p.stuck && p.state == linkOpen: // another one has no answers of this node to send
		p.stuck = true
		p.host.sys.Root.Send(p.link, stuckMsg)
	}
}

// unlockAndWake unlocks mu, and wakes the link if it does not know yet that something waits.
func (p *peer) unlockAndWake() {
	wake := !p.awake && !p.ended && p.readyLocked()
	p.awake = p.awake || wake
	p.mu.Unlock()
	if wake {
		p.host.sys.Root.Send(p.link, flushMsg)
	}
}

// awaitRoom waits until there is room for m, of size bytes, for a target, or until the peer has
// ended. The room is reserved then.
func (p *peer) awaitRoom(target string, size int, m *outgoing) {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	var room <-chan struct{}
	room, m.place = p.user.Wait(target, size)
	p.releaseLocked()
	p.mu.Unlock()
	<-room
	p.host.rt.Scheduler().Resume()
	m.room = p
}

// unreserveLocked releases the room that is reserved for m here.
func (p *peer) unreserveLocked(m *outgoing) {
	if m.room == p {
		m.room = nil
		p.user.Unreserve(m.place)
		m.place = outbox.Place{}
	}
}

// giveBack releases the room that is reserved for m at any peer: it is not sent there.
func (m *outgoing) giveBack() {
	if p := m.room; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.unreserveLocked(m)
		p.releaseLocked()
	}
}

// releaseLocked lets those go on who have room now. When the peer has ended all of them go on.
func (p *peer) releaseLocked() { p.user.Release(p.ended) }
