package actor

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Send is a message to the peer, the command that carries data (ours). NewSend and NewSendBuffer
// make one. It belongs to the connection once it was sent, and must not be sent twice. A failure is
// always answered, with *SendFailed; success only if Notify is set, with *Sent.
type Send struct {
	// Notify asks for *Sent when the device has taken the message, or, if it is large, when the
	// peer's device has read it. Whether the peer has consumed it is only known from the counts in
	// Closed.
	Notify bool
	// Renew, if it is set, is called on the loop when a message that has waited in the connection,
	// for credits or for memory, is about to be sent. It gets the bytes of the message, may change
	// them, and returns a prefix of them, which is then sent. It may be called more than once and
	// must not block. It is not called for messages that go at once. A panic in it ends the
	// connection, with a PanicError.
	Renew func(p []byte) (rest []byte)

	out    datapath.Outgoing
	sender *actor.PID
}

// NewSend makes a message of a copy of p. Any goroutine.
func NewSend(p []byte) *Send {
	s := newSend(len(p))
	copy(s.out.Bytes(), p)
	return s
}

// NewSendBuffer makes a message of n bytes that the caller writes into Bytes, which saves NewSend's
// copy. The bytes are not zeroed. A message that is not sent should be given back with Release. A
// negative n panics. Any goroutine.
func NewSendBuffer(n int) *Send {
	if n < 0 {
		panic(fmt.Sprintf("rdma: NewSendBuffer of %d bytes", n))
	}
	return newSend(n)
}

// Bytes is the message, to be written before it is sent. Once it was sent it belongs to the
// connection, and Bytes is nil. Any goroutine that owns s.
func (s *Send) Bytes() []byte {
	s.need()
	if !s.out.Usable() {
		return nil
	}
	return s.out.Bytes()
}

// Release gives back a message that was not sent; it must not be used any more. Any goroutine that
// owns s.
func (s *Send) Release() {
	if !s.usable() {
		panic("rdma: Send.Release of a message that was sent, or released before")
	}
	s.out.Take()
	s.out.Recycle()
}

// newSend makes a message of n bytes, which are not zeroed.
func newSend(n int) *Send {
	if o := datapath.Pooled(n); o != nil {
		s := o.Of.(*Send)
		s.Notify, s.Renew, s.sender = false, nil, nil
		return s
	}
	s := new(Send)
	s.out.Init(s, n)
	return s
}

// Len is the message's length in bytes.
func (s *Send) Len() int {
	s.need()
	return max(s.out.Len(), 0) // a zero Send has no room for a header
}

// need panics if there is no Send.
func (s *Send) need() {
	if s == nil {
		panic("rdma: a nil *Send: NewSend and NewSendBuffer make one")
	}
}

// usable reports whether s was made by NewSend and not sent or released before.
func (s *Send) usable() bool {
	if s == nil || !s.out.Usable() {
		return false
	}
	s.out.Of = s // it may have been copied by value
	return true
}

// Received is a message from the peer (ours). If the owner is an OnLoop or OffLoop actor, Data is
// valid until Receive returns; then the credit goes back to the peer, unless Retain was called. An
// owner of any other kind gets a copy of its own, and exerts no back-pressure. A message that its
// owner still has when Runtime.Shutdown gives up waiting for it stays readable.
//
// As long as it may read the message, an owner may forward or send it to other OnLoop and OffLoop
// actors. It is then valid for each of them in the same way, and the credit goes back when the last
// of them has returned. No other receiver (an actor with a mailbox of Proto.Actor's, a future, a
// channel, ReenterAfter, Stash) reports when it is finished: send it a Clone, or a message that was
// retained and that it releases. Builds with the tag rdmadebug, or with the race detector,
// overwrite a message that the last user has given back, and panic if it is sent on.
type Received struct {
	cmid.EventBase
	Data []byte
	// Since is when the message, or the offer of it, came, if it then had to wait in the
	// connection: for memory, for earlier messages, or for Established. Otherwise it is zero.
	Since time.Time
	// HasImm says that this is no message, but the peer's Write with an immediate: Written bytes
	// are in memory that the peer was granted, and Data is empty. Only a peer that was granted
	// memory with RemoteWrite can do that. It takes a credit, which goes back as with a message.
	HasImm  bool
	Imm     uint32 // the peer's Write.Imm
	Written int

	env  actor.MessageEnvelope // as it is delivered
	from *ident                // whose owner it was delivered to
	in   datapath.Inbound      // its conn is nil: Data is a copy, there is nothing to give back
	refs atomic.Int32          // 0 or 1 while nobody has retained it
}

// newReceived makes one for the data path.
func newReceived() *datapath.Inbound {
	m := new(Received)
	m.in.Of = m
	return &m.in
}

// Kind returns states.KindReceived.
func (*Received) Kind() states.Kind { return states.KindReceived }

// String returns one line for logs. It does not show the data, which is the peer's.
func (m *Received) String() string {
	m.need()
	if m.HasImm {
		return fmt.Sprintf("the peer has written %d bytes, immediate %#x (id %d)", m.Written, m.Imm, m.ID)
	}
	return fmt.Sprintf("received %d bytes (id %d)", len(m.Data), m.ID)
}

// Clone is a copy that belongs to no connection: it may be kept for ever and sent to anybody. Its
// Retain and Release do nothing. Any goroutine that has the message.
func (m *Received) Clone() *Received {
	m.need()
	return &Received{
		EventBase: m.EventBase, Data: append([]byte(nil), m.Data...), Since: m.Since, HasImm: m.HasImm, Imm: m.Imm, Written: m.Written,
	}
}

// need panics if there is no message.
func (m *Received) need() {
	if m == nil {
		panic("rdma: a nil *Received: owners receive them, and Clone makes one")
	}
}

// The events of the data path.
type (
	// Sent says that the device has taken a message whose Send wanted to Notify (ours).
	Sent struct {
		cmid.EventBase
		Bytes int
	}
	// SendFailed says that a message was not sent, or perhaps not (ours): ErrQueueFull,
	// ErrTooLarge, ErrFlushed, or unix.ENOMEM when there is no memory to send it from. With
	// ErrQueueFull, and where there is no connection, it may stand for several messages: while such
	// an answer waits in an actor's mailbox, further refusals are added to it.
	SendFailed struct {
		cmid.FailureBase
		Bytes int // of all that it stands for
		Sends int // how many that are; 1 or more

		piles *piles // it may be added to
		pile  pile
	}
	// Writable says that the queue has room again after ErrQueueFull (ours).
	Writable struct{ cmid.EventBase }
)

// Kind returns states.KindSent.
func (*Sent) Kind() states.Kind { return states.KindSent }

// String returns one line for logs.
func (e *Sent) String() string { return fmt.Sprintf("sent %d bytes (id %d)", e.Bytes, e.ID) }

// Kind returns states.KindSendFailed.
func (*SendFailed) Kind() states.Kind { return states.KindSendFailed }

// Kind returns states.KindWritable.
func (*Writable) Kind() states.Kind { return states.KindWritable }

// String returns one line for logs.
func (e *Writable) String() string { return fmt.Sprintf("writable (id %d)", e.ID) }

// piles has the answers to refused Sends that wait in mailboxes of this package, at most one of
// each kind in each mailbox. Further refusals are added to the answer until its receiver takes it,
// so a flood of refusals does not fill that mailbox. Other mailboxes do not report when a message
// was taken from them, so there each refusal is a message of its own.
type piles struct {
	mu sync.Mutex
	in map[pile]*SendFailed
}

// pile is the key under which refusals are added up.
type pile struct {
	box  *mailbox.Mailbox
	kind error
}

// add adds to the answer that waits at the key. Not ok: none does. Loop goroutine.
func (p *piles) add(at pile, sends, bytes int) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.in[at]
	if ok {
		e.Sends += sends
		e.Bytes += bytes
	}
	return ok
}

// begin makes e, which is about to be sent, the answer to which further refusals are added. Loop
// goroutine.
func (p *piles) begin(at pile, e *SendFailed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil {
		p.in = make(map[pile]*SendFailed)
	}
	p.in[at] = e
	e.piles, e.pile = p, at
}
