package rpc

import (
	"math"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// A loop copies small bodies out of the memory that they were received in. Larger ones stay there
// until a goroutine has copied them, so that other connections do not wait. They stay no longer, so
// that neither a handler nor a slow receiver keeps memory that connections share.

// copyOnLoop is the largest body that is copied on the loop.
const copyOnLoop = keepBuffer

// body is a request or an answer: in the message that it came in, or copied.
type body struct {
	b []byte
	// the message that was retained for it; nil: it was copied, or is used in place
	retained *rdma.Received
}

// retainMessage takes b, which lies in m. It retains m, unless b is so small that the caller copies
// it immediately. It is called on the loop.
func (y *body) retainMessage(m *rdma.Received, b []byte) (small bool) {
	y.b = b
	if small = len(b) <= copyOnLoop; !small {
		y.retained = m.Retain()
	}
	return small
}

// copyTo copies it into memory, whose contents are overwritten, and releases its message.
func (y *body) copyTo(memory []byte) {
	y.b = cloneLarge(memory, y.b)
	y.releaseMessage()
}

// releaseMessage releases its message.
func (y *body) releaseMessage() {
	if y.retained != nil {
		y.retained.Release()
		y.retained = nil
	}
}

// landing is a large item of a stream: on its way out of the message that it came in, or in parts.
type landing struct {
	item  []byte
	here  chan struct{} // closed when the item is complete; nil: it is in parts
	parts parts
}

// largeItem stands in inbound.in where the length of a small item would.
const largeItem = math.MaxUint32

// landItem starts a goroutine that copies an item, body, which lies in m. It is called on the loop.
func landItem(s *sched.Scheduler, m *rdma.Received, body []byte) *landing {
	l := &landing{here: make(chan struct{})}
	m.Retain()
	s.Go(func() {
		l.item = cloneLarge(nil, body)
		m.Release()
		close(l.here)
	})
	return l
}
