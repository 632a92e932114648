package rpc

import (
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// clientCall is a call in flight, as its caller has it. It is used again for other calls.
type clientCall struct {
	m *method
	stopwatch
	id       wire.CallID
	most     int       // largest answer or item, in bytes; 0: as large as a message
	deadline time.Time // zero: none
	// has a token when the call is finished; streams and actors do not use it
	done  chan struct{}
	reply []byte      // the answer
	parts parts       // of an answer that comes in parts; out.mu until the call is finished
	kept  int         // bytes of table.beyond that the call has; out.mu
	meta  *answerMeta // metadata of the answer; nil: not asked for; out.mu
	opts  callOptions
	err   *Error      // the reason why there is no answer
	next  *clientCall // in the list of calls that are being finished
	body  body        // the answer in the received message, while the call is in that list

	stream *clientStream // set for a stream
	actor  ender         // receives the answer as a message
}

// ender is notified of a call's end: on the loop, unless its answer is large.
type ender interface{ callFinished(c *clientCall) }

// notifyWaiter notifies the stream, the actor or the goroutine that waits for the call.
func (c *clientCall) notifyWaiter() {
	switch {
	case c.stream != nil:
		c.stream.callFinished(c)
	case c.actor != nil:
		c.actor.callFinished(c)
	default:
		c.done <- struct{}{}
	}
}

// errOrNil returns the error of a call that is finished.
func (c *clientCall) errOrNil() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// exceeds reports whether the answer or item that is arriving is too large with n more bytes.
func (c *clientCall) exceeds(n int) bool {
	if c.most <= 0 {
		return false
	}
	if c.m.items {
		return c.stream.arriving()+n > c.most
	}
	return c.parts.n+n > c.most
}

// isLarge reports whether the answer is too large to be handled on the loop.
func (c *clientCall) isLarge() bool { return c.body.retained != nil || len(c.parts.all) > 0 }

// ownReply copies the answer out of the message that was retained for it, if one was, or joins its
// parts. In these cases it runs on the caller's goroutine or on a separate one, not on the loop.
func (c *clientCall) ownReply() {
	switch {
	case len(c.parts.all) > 0:
		c.reply = c.parts.join(c.reply[:0])
	case c.body.retained != nil:
		c.copyReply()
	}
}

// appendTo appends the answer to dst, like ownReply.
func (c *clientCall) appendTo(dst []byte) []byte {
	if len(c.parts.all) > 0 {
		return c.parts.join(dst)
	}
	c.ownReply()
	return append(dst, c.reply...)
}

func (c *clientCall) copyReply() {
	c.body.copyTo(c.reply)
	c.reply, c.body.b = c.body.b, nil
}
