package cmidtest

import (
	"sync"

	"github.com/rdmactor/rdmactor/cmid"
)

// Passing is a message as seen in the middle of a link.
type Passing struct {
	Message Message
	// Handle is that of the identifier that has sent it; 0: it has gone, or never was.
	Handle cmid.Handle
	// Local and Peer are its addresses: this side's and the other one's.
	Local, Peer cmid.Addr
	// Bytes are a Send's, those of the answer to a Read, or private data.
	Bytes []byte
}

// tap is an observer on the path.
type tap struct {
	mu sync.Mutex
	fn func(p Passing) []byte
}

// Intercept puts an observer in the middle of every link, which reads and changes the programs'
// messages: fn gets the bytes of each Send and of each answer to a Read, and the private data of
// each MsgREQ, MsgREP and MsgREJ. Its result arrives instead; after nil the message is lost. fn
// may keep and change b. Calls come one at a time, from the goroutines of the loops that send. A
// nil fn ends it.
func (f *Fabric) Intercept(fn func(m Message, b []byte) []byte) {
	if fn == nil {
		f.InterceptPassing(nil)
		return
	}
	f.InterceptPassing(func(p Passing) []byte { return fn(p.Message, p.Bytes) })
}

// InterceptPassing is Intercept, with the sender of each message. It takes the place of an
// Intercept before it.
func (f *Fabric) InterceptPassing(fn func(p Passing) []byte) {
	f.tap.mu.Lock()
	defer f.tap.mu.Unlock()
	f.tap.fn = fn
}

// interceptPacket shows p to the observer. It reports whether p is lost.
func (f *Fabric) interceptPacket(p *packet) (lost bool) {
	f.tap.mu.Lock()
	defer f.tap.mu.Unlock()
	if f.tap.fn == nil {
		return false
	}
	switch p.kind {
	case MsgSend, MsgReadResponse:
		b := f.tap.fn(p.observerView(p.data.b))
		p.data.b = append(p.data.b[:0], b...)
		return b == nil
	case MsgREQ, MsgREP, MsgREJ:
		m := *p.cm
		m.private = f.tap.fn(p.observerView(m.private))
		p.cm = &m
		return m.private == nil
	}
	return false
}

// observerView returns the observer's view of a packet.
func (p *packet) observerView(b []byte) Passing {
	s := Passing{Message: p.kind, Bytes: append([]byte{}, b...)}
	if p.by != nil {
		s.Handle, s.Local, s.Peer = p.by.h, p.by.local, p.by.peer
	}
	return s
}
