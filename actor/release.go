package actor

import (
	"errors"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/eventloop"
)

// returns is where released messages come back to their loop, from any goroutine.
type returns struct {
	el *eventloop.Loop

	mu      sync.Mutex
	in      []*Received
	waiting bool // Run is queued
	batch   []*Received
}

// put gives m back. After the loop's end there is nobody left to notify.
func (r *returns) put(m *Received) {
	r.mu.Lock()
	r.in = append(r.in, m)
	first := !r.waiting
	r.waiting = true
	r.mu.Unlock()
	if first {
		_ = r.el.Schedule(r)
	}
}

// Run takes everything back.
func (r *returns) Run(int) (more bool) {
	r.mu.Lock()
	r.in, r.batch = r.batch[:0], r.in
	r.waiting = false
	r.mu.Unlock()
	for i, m := range r.batch {
		r.batch[i] = nil
		m.giveBack()
	}
	return false
}

// LoopName names it in the loop's reports of stalls.
func (r *returns) LoopName() string { return "released messages" }

// Retain keeps the message valid beyond Receive. Each Retain needs one Release; Runtime.Shutdown
// waits for it until its context ends. Any goroutine that has the message.
func (m *Received) Retain() *Received {
	m.need()
	m.keep()
	return m
}

// Release gives a retained message back, and with the last one the peer's credit. Data must not be
// used any more. Any goroutine.
func (m *Received) Release() {
	m.need()
	if m.in.Conn == nil {
		return
	}
	switch n := m.refs.Add(-1); {
	case n < 0:
		panic("rdma: " + errReleased.Error())
	case n == 0:
		m.from.l.returns.put(m)
	}
}

// errReleased is the failure of an actor that has released a message once too often.
var errReleased = errors.New("Received.Release without Retain")

// begin takes the first reference: the owner's. Loop goroutine.
func (m *Received) begin() {
	if m.refs.Load() != 1 {
		m.refs.Store(1)
	}
}

// keep takes a reference.
func (m *Received) keep() {
	if n := m.refs.Add(1); overwrite.On && n <= overwritten {
		panic("rdma: a Received was used after it had been given back: Retain it in time, or send a Clone")
	}
}

// overwritten marks a message that was given back: refs is then twice this number, and nobody adds
// so much that it gets above this number again.
const overwritten = -1 << 24

// done gives a reference back on loop l (nil: off the loops) when Receive has returned. On the
// connection's own loop the buffer is free at once, still warm for the next message.
func (m *Received) done(l *mailbox.Loop) error {
	if m.in.Conn == nil {
		return nil
	}
	near := l == m.from.l.exec && !l.Over()
	if near && m.refs.Load() == 1 { // only who has one can add one, and that is us
		m.giveBack()
		return nil
	}
	switch n := m.refs.Add(-1); {
	case n < 0:
		return errReleased
	case n > 0:
	case near:
		m.giveBack()
	default:
		m.from.l.returns.put(m)
	}
	return nil
}

// giveBack gives the memory and the credit back. On the connection's loop.
func (m *Received) giveBack() {
	l, c := m.from.l, m.in.Conn
	m.Data, m.Since, m.from, m.env.Sender, m.env.Message = nil, time.Time{}, nil, nil, nil
	m.HasImm, m.Imm, m.Written = false, 0, 0
	if overwrite.On {
		m.refs.Store(2 * overwritten) // it is not used again: who still has it is found
	}
	c.Consumed(&m.in)
	if l.Returned != nil {
		l.Returned()
	}
}
