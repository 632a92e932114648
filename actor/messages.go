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
	// must not block. It is not called for messages that are sent immediately. A panic in it ends
	// the connection, with a PanicError.
	Renew func(p []byte) (rest []byte)

	out    datapath.Outgoing
	sender *actor.PID
}

// NewSend makes a message of a copy of p. Any goroutine may call it.
func NewSend(p []byte) *Send {
	s := newSend(len(p))
	copy(s.out.Bytes(), p)
	return s
}

// NewSendBuffer makes a message of n bytes that the caller writes into Bytes, which saves NewSend's
// copy. The bytes are not zeroed. A message that is not sent should be released with Release. A
// negative n panics. Any goroutine may call it.
func NewSendBuffer(n int) *Send {
	if n < 0 {
		panic(fmt.Sprintf("rdma: NewSendBuffer of %d bytes", n))
	}
	return newSend(n)
}

// Bytes returns the message, to be written before it is sent. Once it was sent it belongs to the
// connection, and Bytes returns nil. Any goroutine that owns s may call it.
func (s *Send) Bytes() []byte {
	s.panicIfNil()
	if !s.out.Usable() {
		return nil
	}
	return s.out.Bytes()
}

// Release releases a message that was not sent; it must not be used afterwards. Any goroutine that
// owns s may call it.
func (s *Send) Release() {
	if !s.isUsable() {
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

// Len returns the message's length in bytes.
func (s *Send) Len() int {
	s.panicIfNil()
	return max(s.out.Len(), 0) // a zero Send has no room for a header
}

// panicIfNil panics if there is no Send.
func (s *Send) panicIfNil() {
	if s == nil {
		panic("rdma: a nil *Send: NewSend and NewSendBuffer make one")
	}
}

// isUsable reports whether s was made by NewSend and not sent or released before.
func (s *Send) isUsable() bool {
	if s == nil || !s.out.Usable() {
		return false
	}
	s.out.Of = s // it may have been copied by value
	return true
}

// Received is a message from the peer (ours). Its Data belongs to the connection, and these actors
// may read it:
//
//   - If the owner is an OnLoop or OffLoop actor, Data is valid until Receive returns. Then the
//     credit goes back to the peer.
//   - After Retain it is valid until Release, on any goroutine.
//   - The owner may send the message to other OnLoop and OffLoop actors as long as it may read it.
//     Each of them has it in the same way, and the credit goes back when the last has returned.
//   - Any other receiver (an actor with a mailbox of Proto.Actor's, a future, a channel,
//     ReenterAfter, Stash) cannot report that it has finished: send it a Clone, or a retained
//     message that it releases.
//   - An owner that is neither an OnLoop nor an OffLoop actor gets a copy, which is its own, and
//     exerts no back-pressure.
//   - A message that its owner still has when Runtime.Shutdown gives up waiting for it stays
//     readable.
//
// Builds with the tag rdmadebug, or with the race detector, overwrite a message that its last user
// has released, and panic if it is sent on.
type Received struct {
	cmid.EventBase
	Data []byte
	// Since is the time at which the message, or the offer of it, arrived, if it then had to wait
	// in the connection: for memory, for earlier messages, or for Established. Otherwise it is
	// zero.
	Since time.Time
	// HasImm is set if this is no message, but the peer's Write with an immediate: Written bytes
	// are in memory that the peer was granted, and Data is empty. Only a peer that was granted
	// memory with RemoteWrite can do that. It takes a credit, which goes back as with a message.
	HasImm  bool
	Imm     uint32 // the peer's Write.Imm
	Written int

	env  actor.MessageEnvelope // as it is delivered
	from *outbox               // of the identifier that delivered it
	in   datapath.Inbound      // its conn is nil: Data is a copy, there is nothing to release
	refs atomic.Int32          // 0 or 1 while it is not retained
}

// newInbound makes a Received for the data path.
func newInbound() *datapath.Inbound {
	m := new(Received)
	m.in.Of = m
	return &m.in
}

// Kind returns states.KindReceived.
func (*Received) Kind() states.Kind { return states.KindReceived }

// String returns one line for logs. It does not show the data, which is the peer's.
func (m *Received) String() string {
	m.panicIfNil()
	if m.HasImm {
		return fmt.Sprintf("the peer has written %d bytes, immediate %#x (id %d)", m.Written, m.Imm, m.ID)
	}
	return fmt.Sprintf("received %d bytes (id %d)", len(m.Data), m.ID)
}

// Clone returns a copy that belongs to no connection: it may be kept forever and sent to any
// receiver. Its Retain and Release do nothing. Any goroutine that has the message may call it.
func (m *Received) Clone() *Received {
	m.panicIfNil()
	return &Received{
		EventBase: m.EventBase, Data: append([]byte(nil), m.Data...), Since: m.Since, HasImm: m.HasImm, Imm: m.Imm, Written: m.Written,
	}
}

// panicIfNil panics if there is no message.
func (m *Received) panicIfNil() {
	if m == nil {
		panic("rdma: a nil *Received: owners receive them, and Clone makes one")
	}
}

// The events of the data path.
type (
	// Sent reports that the device has taken a message whose Send had Notify set (ours).
	Sent struct {
		cmid.EventBase
		Bytes int
	}
	// SendFailed reports that a message was not sent, or perhaps not (ours): ErrQueueFull,
	// ErrTooLarge, ErrFlushed, or unix.ENOMEM when there is no memory to send it from. With
	// ErrQueueFull, and without a connection, it may stand for several messages: while such an
	// answer waits in an actor's mailbox, further refusals are added to it.
	SendFailed struct {
		cmid.FailureBase
		Bytes int // the sum over all these messages
		Sends int // the number of these messages, 1 or more

		piles *piles // where it is registered, for further refusals; nil: nowhere
		pile  pile
	}
	// Writable reports that the queue has room again after ErrQueueFull (ours).
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
// was taken from them, so there each refusal is a separate message.
type piles struct {
	mu sync.Mutex
	in map[pile]*SendFailed
}

// pile is the key under which refusals are added up.
type pile struct {
	box  *mailbox.Mailbox
	kind error
}

// addToPile adds to the answer that waits at the key. Not ok: there is none. Loop goroutine.
func (p *piles) addToPile(at pile, sends, bytes int) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.in[at]
	if ok {
		e.Sends += sends
		e.Bytes += bytes
	}
	return ok
}

// beginPile makes e, which is about to be sent, the answer to which further refusals are added.
// Loop goroutine.
func (p *piles) beginPile(at pile, e *SendFailed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil {
		p.in = make(map[pile]*SendFailed)
	}
	p.in[at] = e
	e.piles, e.pile = p, at
}
