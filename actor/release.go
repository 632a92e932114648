package actor

import (
	"errors"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/eventloop"
)

// returns passes released messages back to their loop, from any goroutine.
type returns struct {
	el *eventloop.Loop

	mu      sync.Mutex
	in      []*Received
	waiting bool // Run is queued
	batch   []*Received
}

// put returns m. After the loop's end it has no effect.
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

// Run releases all returned messages.
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
	m.panicIfNil()
	m.addRef()
	return m
}

// Release returns a retained message, and with the last reference the peer's credit. Data must not
// be used afterwards. Any goroutine may call it.
func (m *Received) Release() {
	m.panicIfNil()
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

// initRefs takes the first reference: the owner's. Loop goroutine.
func (m *Received) initRefs() {
	if m.refs.Load() != 1 {
		m.refs.Store(1)
	}
}

// addRef takes a reference.
func (m *Received) addRef() {
	if n := m.refs.Add(1); overwrite.On && n <= overwritten {
		panic("rdma: a Received was used after it was released: Retain it in time, or send a Clone")
	}
}

// overwritten marks a released message: refs is then twice this number, and no realistic number of
// additions gets it above this number again.
const overwritten = -1 << 24

// releaseRef drops a reference on loop l (nil: off the loops) when Receive has returned. On the
// connection's own loop the buffer is free immediately, still warm for the next message.
func (m *Received) releaseRef(l *mailbox.Loop) error {
	if m.in.Conn == nil {
		return nil
	}
	near := l == m.from.l.exec && !l.Over()
	if near && m.refs.Load() == 1 { // only a reference's holder can add one
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

// giveBack returns the memory and the credit. On the connection's loop.
func (m *Received) giveBack() {
	l, c := m.from.l, m.in.Conn
	m.Data, m.Since, m.from, m.env.Sender, m.env.Message = nil, time.Time{}, nil, nil, nil
	m.HasImm, m.Imm, m.Written = false, 0, 0
	if overwrite.On {
		m.refs.Store(2 * overwritten) // a later use is detected
	}
	c.Consumed(&m.in)
	if l.Returned != nil {
		l.Returned()
	}
}
