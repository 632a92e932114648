package rpc

import (
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// clientCall is a call in flight, as its caller has it. It is used again for other calls.
type clientCall struct {
	m *method
	stopwatch
	id       wire.CallID
	deadline time.Time // zero: none
	// has a token when the call is finished; streams and actors do not use it
	done  chan struct{}
	reply []byte      // the answer
	err   *Error      // the reason why there is no answer
	next  *clientCall // in the list of calls that are being finished
	body  body        // the answer in the received message, while the call is in that list

	stream items // set for a stream
	actor  ender // receives the answer as a message
}

// ender is notified of a call's end: on the loop, unless its answer is large.
type ender interface{ finish(c *clientCall) }

// items receives the items of a stream, and its end.
type items interface {
	ender
	// itemLocked takes an item b, which lies in m. It is called on the loop.
	itemLocked(m *rdma.Received, b []byte) error
}

// finish notifies the stream, the actor or the goroutine that waits for the call.
func (c *clientCall) finish() {
	switch {
	case c.stream != nil:
		c.stream.finish(c)
	case c.actor != nil:
		c.actor.finish(c)
	default:
		c.done <- struct{}{}
	}
}

// failure returns the error of a call that is finished.
func (c *clientCall) failure() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// own copies the answer out of the message that was retained for it, if one was. In that case it
// runs on the caller's goroutine or on a separate one, not on the loop.
func (c *clientCall) own() {
	if c.body.retained != nil {
		c.copy()
	}
}

func (c *clientCall) copy() {
	c.body.copy(c.reply)
	c.reply, c.body.b = c.body.b, nil
}
