package rpc

import (
	"fmt"
	"runtime/debug"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// serverCall is a call that was admitted.
type serverCall struct {
	c    *serverConn
	h    *handler
	id   callID
	ctx  callContext
	body []byte      // the request
	next *serverCall // in the workers' queue

	memory *buffer        // of body; nil: it is the received message's
	held   *rdma.Received // that message, until the request is copied; nil: OnLoop, or it was

	// Of a stream; out.mu.
	window int64
	waits  bool          // it is among out.waiters
	room   chan struct{} // holds a token when something has changed that the sender may wait for
}

func (call *serverCall) begin(h header, metadata []byte) {
	call.ctx.info.Method, call.ctx.info.Stream, call.ctx.info.Server = call.h.m.name, call.h.m.stream, true
	call.ctx.info.Peer = call.c.peer
	call.ctx.metadata = metadata
	if t := h.timeout(); t > 0 {
		call.ctx.deadline = call.c.arrival().Add(t)
	}
}

// run handles and answers, on a worker.
func (call *serverCall) run() {
	if call.handle() {
		call.c.out.tell()
	}
	call.ctx.end(errHandled)
	call.drop()
}

// handle calls the handler, unless nobody waits any more, and puts the answer. It reports whether
// the loop has to be told.
func (call *serverCall) handle() (tell bool) {
	scratch := getBuffer()
	if err := call.ctx.Err(); err != nil {
		tell = call.answer(nil, err, flagRefused, scratch.b)
		scratch.put(0)
		return tell
	}
	call.own()
	reply, err := call.invoke(scratch.b)
	tell = call.answer(reply, err, 0, scratch.b)
	scratch.put(len(reply))
	return tell
}

// invoke calls the handler.
func (call *serverCall) invoke(scratch []byte) (reply []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = call.panicked(v)
		}
	}()
	var out *sending
	if call.h.stream != nil {
		out = &sending{call}
	}
	return call.h.invoke(call.c.s, &call.ctx, call.body, scratch, out)
}

// panicked is the answer of a handler that has panicked. Its client is not told why: that may be nobody else's business.
func (call *serverCall) panicked(v any) error {
	call.c.s.log.Error("rpc: a handler has panicked", "method", call.h.m.name, "panic", v, "stack", string(debug.Stack()))
	return &Error{Code: CodeInternal, Message: "the handler has panicked"}
}

// spell is wireError, for errors that panic when they are asked, too: a nil *Error is one.
func (call *serverCall) spell(err error) (code Code, text string, details []byte) {
	defer func() {
		if v := recover(); v != nil {
			code, text, details = wireError(call.panicked(v))
		}
	}()
	return wireError(err)
}

// leave gives the call's place to others.
func (call *serverCall) leave() {
	if !call.h.inline {
		call.c.s.shares.give(&call.c.share, call.h.place(), 1)
	}
	call.c.s.answered()
}

// answer puts the answer, and reports whether the loop has to be told. flags are those of an error.
func (call *serverCall) answer(reply []byte, err error, flags uint8, scratch []byte) (tell bool) {
	c := call.c
	defer call.leave()
	h := header{typ: frameReply, call: call.id}
	if err == nil && headerLen+len(reply) > c.limit {
		err = &Error{Code: CodeTooLarge, Message: fmt.Sprintf("the answer has %d bytes, the client takes %d", len(reply), c.limit-headerLen)}
	}
	if err != nil {
		code, text, details := call.spell(err)
		h.typ, h.number, h.flags = frameError, uint16(code), flags
		reply = appendError(scratch[:0], text, details)
		if headerLen+len(reply) > c.limit {
			reply = reply[:0]
		}
	}
	h.length = uint32(len(reply))
	if len(reply) > gatherBytes {
		s, p := rdma.BuildSend(headerLen + len(reply))
		h.put(p)
		copy(p[headerLen:], reply)
		c.out.mu.Lock()
		c.out.putSend(s)
	} else {
		c.out.mu.Lock()
		c.out.put(h, reply)
	}
	if i := call.id.slot(); i < len(c.calls) && c.calls[i] == call {
		c.calls[i] = nil
	}
	tell = c.out.wake()
	c.out.mu.Unlock()
	return tell
}
