package rpc

import (
	"context"
	"fmt"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// serverCall is a call that was admitted.
type serverCall struct {
	c    *serverConn
	h    *handler
	id   wire.CallID
	ctx  callContext
	body body        // the request
	next *serverCall // in the workers' queue
	stopwatch

	passage *passage // through the interceptors; nil: there are none
	behind  bool     // an interceptor has returned before its next: release follows

	memory *buffer // of body; nil: it is the received message's
	bytes  int     // of the request, with the memory that it is in; 0 on the loop
	size   int     // of the request

	// Of a stream; out.mu.
	window int64
	waiter
}

func (call *serverCall) begin(h wire.Header, metadata []byte) {
	call.passage, call.behind = nil, false
	call.ctx.info.Method, call.ctx.info.Stream, call.ctx.info.Server = call.h.m.name, call.h.m.stream, true
	call.ctx.info.Peer, call.ctx.info.Identity, call.ctx.info.TLS = call.c.peer, call.c.identity, call.c.tls
	call.ctx.metadata = metadata
	if len(call.c.s.cfg.Interceptors) > 0 {
		call.ctx.info.Arrived = call.c.arrival()
	}
	if t := h.Timeout(); t > 0 {
		call.ctx.deadline = call.c.arrival().Add(t)
	}
}

// run handles and answers, on a worker.
func (call *serverCall) run() {
	defer func() {
		call.ctx.end(errHandled)
		if !call.behind {
			call.drop()
		}
	}()
	call.handle()
}

// own copies the request out of the message that was retained for it, if one was, on the goroutine
// that handles it.
func (call *serverCall) own() {
	if call.body.retained != nil {
		call.copy()
	}
}

func (call *serverCall) copy() {
	call.memory = getBufferFor(len(call.body.b))
	call.body.copy(call.memory.b)
	call.memory.b = call.body.b
}

// within prepares the way through the interceptors to do.
func (call *serverCall) within(request any, do func(ctx context.Context, in *Info) error) {
	call.ctx.info.Request = request
	call.passage = &passage{is: call.c.s.cfg.Interceptors, m: call.h.m, info: &call.ctx.info, do: do}
}

// leave reports whether the handler, or an interceptor, still runs although the outermost one has
// returned. Then what the call has is kept until they have returned: its place, its context, and
// what the request is in.
func (call *serverCall) leave() (behind bool) {
	if call.passage == nil {
		return false
	}
	if call.h.inline { // the request lies in the message that is being read
		call.body.retained = call.c.reading.Retain()
	}
	if call.passage.atEnd(call.release) {
		return true
	}
	if call.h.inline {
		call.body.drop()
	}
	return false
}

// release gives back what was kept for a handler that was left behind, except its memory: the
// answer may lie in that. Any goroutine.
func (call *serverCall) release() {
	call.body.drop()
	out := &call.c.out
	out.mu.Lock()
	out.purse.Requests -= call.bytes
	out.purse.Settle(out.bytes)
	out.mu.Unlock()
	call.givePlaceBack()
}

// drop gives back what the request is in.
func (call *serverCall) drop() {
	call.body.drop()
	if call.memory != nil {
		call.memory.put(len(call.body.b))
		call.memory = nil
	}
	call.body.b = nil
}

// outcome is what the call of a handler results in.
type outcome struct {
	reply   []byte
	code    Code // 0: reply is the answer
	flags   uint8
	text    string
	details []byte
}

// handle calls the handler and puts the answer, also if the handler panics or calls
// runtime.Goexit. On another goroutine than the loop's it has the loop send it.
func (call *serverCall) handle() {
	scratch := getBuffer()
	var o outcome
	defer func() {
		call.behind = call.leave()
		if call.answer(&o, scratch.b) && !call.h.inline {
			call.c.out.requestFlush()
		}
		scratch.put(len(o.reply))
	}()
	try(func() { o = call.invoke(scratch.b) }, func(why *PanicError) {
		// the client does not get why: it may be private
		o = outcome{code: CodeInternal, text: "the handler has panicked"}
		call.c.s.panicked(call.h.m.name, why)
	})
}

// invoke calls the handler, unless nobody waits any more.
func (call *serverCall) invoke(scratch []byte) (o outcome) {
	err := call.ctx.Err()
	if err != nil {
		o.flags = wire.FlagRefused
	} else {
		call.own()
		o.reply, err = call.h.invoke(call, scratch)
	}
	if err != nil {
		o.code, o.text, o.details = wireError(err)
	}
	return o
}

// givePlaceBack gives the call's place to others.
func (call *serverCall) givePlaceBack() {
	if !call.h.inline {
		call.c.share.Give(call.h.place(), 1)
	}
}

// noMemory is the body of the error that takes the place of an answer for which there is no memory.
var noMemory = wire.AppendError(nil, "no memory for the answer, because others wait for the client", nil)

// answer puts the answer, and reports whether a flush has to be requested.
func (call *serverCall) answer(o *outcome, scratch []byte) (wake bool) {
	c := call.c
	defer func() {
		if !call.behind {
			call.givePlaceBack()
		}
		c.s.answered()
	}()
	h, reply := wire.Header{Type: wire.FrameReply, Call: call.id}, o.reply
	if o.code == 0 && wire.HeaderLen+len(reply) > c.limit {
		o.code = CodeTooLarge
		o.text = fmt.Sprintf("the answer has %d bytes, the client takes %d", len(reply), c.limit-wire.HeaderLen)
	}
	if o.code != 0 {
		h.Type, h.Number, h.Flags = wire.FrameError, uint16(o.code), o.flags
		reply = wire.AppendError(scratch[:0], o.text, o.details)
		if wire.HeaderLen+len(reply) > c.limit {
			reply = reply[:0]
		}
	}
	own := large(nil, reply)
	call.stop(call.h.counts)
	c.out.mu.Lock()
	if !call.behind {
		c.out.purse.Requests -= call.bytes
	}
	sent := 0
	switch {
	case c.out.ended:
	case len(reply) > len(noMemory) && !c.out.roomLocked(wire.HeaderLen+len(reply)):
		o.code = CodeOverloaded
		c.out.putLocked(wire.Header{Type: wire.FrameError, Flags: h.Flags, Number: uint16(o.code), Call: call.id}, noMemory)
	default:
		sent = len(reply)
		c.out.putLargeLocked(h, own, nil, reply)
	}
	c.out.purse.Settle(c.out.bytes)
	if i := call.id.Slot(); i < len(c.calls) && c.calls[i] == call {
		c.calls[i] = nil
	}
	counted := c.endedLocked(call, o.code, sent)
	wake = c.out.wakeLocked()
	c.out.mu.Unlock()
	c.s.ended(call, o, counted)
	return wake
}

// maxStreamWindow is what a stream's window may not exceed.
const maxStreamWindow = 1 << 31

// widen lets more of a stream be sent. It is called on the loop.
func (call *serverCall) widen(n uint32) error {
	out := &call.c.out
	out.mu.Lock()
	defer out.mu.Unlock()
	if call.room == nil {
		return violation("a window for call %#x, which is no stream", call.id)
	}
	if call.window += int64(n); n == 0 || call.window > maxStreamWindow {
		return violation("a window of %d bytes", call.window)
	}
	call.goOn()
	return nil
}
