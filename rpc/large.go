package rpc

import (
	"math"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A loop copies what is small out of the memory that it was received in. What is larger stays there
// until a goroutine has copied it, so that other connections do not wait; and no longer, so that
// neither a handler nor a slow receiver keeps memory that connections share.

// copyOnLoop is how many bytes are copied on the loop at most.
const copyOnLoop = keepBuffer

// hold takes the request, which is in m. Loop.
func (call *serverCall) hold(m *rdma.Received, body []byte) {
	call.body = body
	if len(body) > copyOnLoop {
		call.held = m.Retain()
		return
	}
	call.copy()
}

// own takes the request out of the message that it came in, on the goroutine that handles it.
func (call *serverCall) own() {
	if call.held != nil {
		call.copy()
		call.held.Release()
		call.held = nil
	}
}

func (call *serverCall) copy() {
	call.memory = getBufferFor(len(call.body))
	call.memory.b = append(call.memory.b, call.body...)
	call.body = call.memory.b
}

// drop gives back what the request is in.
func (call *serverCall) drop() {
	if call.held != nil {
		call.held.Release()
		call.held = nil
	}
	if call.memory != nil {
		call.memory.put(len(call.body))
		call.memory = nil
	}
	call.body = nil
}

// hold takes the answer, which is in m. Loop.
func (c *clientCall) hold(m *rdma.Received) {
	if len(c.body) > copyOnLoop {
		c.held = m.Retain()
		return
	}
	c.copy()
}

// own takes the answer out of the message that it came in, on a goroutine of its own or the
// caller's.
func (c *clientCall) own() {
	if c.held != nil {
		c.copy()
		c.held.Release()
		c.held = nil
	}
}

func (c *clientCall) copy() {
	c.reply = append(c.reply[:0], c.body...)
	c.body = nil
}

// landing is a large item of a stream on its way out of the message that it came in.
type landing struct {
	item []byte
	here chan struct{} // closed when it is complete
}

// largeItem stands in receiving.in where the length of a small item would.
const largeItem = math.MaxUint32

// land copies an item, which is in m. Loop.
func land(m *rdma.Received, body []byte) *landing {
	l := &landing{here: make(chan struct{})}
	m.Retain()
	go func() {
		l.item = append([]byte(nil), body...)
		m.Release()
		close(l.here)
	}()
	return l
}

// landed is the large item that is next.
func (r *receiving) landed() []byte {
	r.mu.Lock()
	l := r.large[0]
	r.large[0] = nil
	r.large = r.large[1:]
	r.mu.Unlock()
	<-l.here
	return l.item
}
