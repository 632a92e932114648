package rpc

import (
	"context"

	"github.com/rdmactor/rdmactor/rpc/internal/share"
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

	place *share.Waiter // its place in the queue; nil: it has not been there

	passage *passage // set with interceptors
	arrival *arrival // of a request in parts; nil: it has come whole
	behind  bool     // an interceptor returned before its next: release follows
	begun   bool     // its beginning was counted; out.mu
	admission

	memory *buffer // memory of body; nil: the received message's
	bytes  int     // memory of the request; 0 on the loop
	size   int     // bytes of the request

	window  int64         // window of a stream whose items this side sends; out.mu
	full    bool          // the last item left no room, or found none; the Sender's
	cutting *cut          // the last large item, until all of it was sent; nil: none; out.mu
	stream  *serverStream // the items that the client sends; nil: it sends none
	waiter                // for a stream, or an answer that has to wait
}

func (call *serverCall) initCall(h wire.Header, metadata []byte) {
	call.passage, call.behind = nil, false
	call.ctx.info.Method, call.ctx.info.Stream, call.ctx.info.Server = call.h.m.name, call.h.m.stream, true
	call.ctx.info.Peer, call.ctx.info.Identity, call.ctx.info.TLS = call.c.peer, call.c.identity, call.c.tls
	call.ctx.metadata = metadata
	if len(call.c.s.cfg.Interceptors) > 0 {
		call.ctx.info.Arrived = call.c.arrivalTime()
	}
	if t := h.Timeout(); t > 0 {
		call.ctx.deadline = call.c.arrivalTime().Add(t)
	}
}

// runCall handles and answers, on a worker; or on the loop, if the request of an OnLoop handler
// came in parts.
func (call *serverCall) runCall() {
	defer func() {
		call.ctx.cancelContext(errHandled)
		if !call.behind {
			call.releaseRequest()
		}
	}()
	call.handleAndAnswer()
}

// ownRequest copies the request out of the message that was retained for it, if one was, or joins
// its parts, on the goroutine that handles it.
func (call *serverCall) ownRequest() {
	switch {
	case call.arrival != nil && call.memory == nil:
		call.memory = getBufferFor(call.arrival.parts.n)
		call.memory.b = call.arrival.parts.join(call.memory.b)
		call.body.b = call.memory.b
	case call.body.retained != nil:
		call.copyRequest()
	}
}

func (call *serverCall) copyRequest() {
	call.memory = getBufferFor(len(call.body.b))
	call.body.copyTo(call.memory.b)
	call.memory.b = call.body.b
}

// setPassage prepares the way through the interceptors to do.
func (call *serverCall) setPassage(request any, do func(ctx context.Context, in *Info) error) {
	call.ctx.info.Request = request
	call.passage = &passage{is: call.c.s.cfg.Interceptors, m: call.h.m, info: &call.ctx.info, do: do}
}

// stillRuns reports whether the handler, or an interceptor, still runs although the outermost one
// has returned. If so, the call's place, its context, and the memory of the request are kept until
// they return.
func (call *serverCall) stillRuns() (behind bool) {
	if call.passage == nil {
		return false
	}
	if call.h.inline && call.memory == nil { // the request lies in the message that is being read
		call.body.retained = call.c.reading.Retain()
	}
	if call.passage.atEnd(call.releaseAbandoned) {
		return true
	}
	if call.h.inline {
		call.body.releaseMessage()
	}
	return false
}

// releaseAbandoned releases the resources of an abandoned handler, except its memory, which may
// contain the answer. Any goroutine may call it.
func (call *serverCall) releaseAbandoned() {
	call.body.releaseMessage()
	out := &call.c.out
	out.mu.Lock()
	out.purse.Requests -= call.bytes
	out.settleLocked()
	out.mu.Unlock()
	call.givePlaceBack()
}

// releaseRequest releases the memory of the request.
func (call *serverCall) releaseRequest() {
	call.body.releaseMessage()
	if call.arrival != nil {
		call.arrival.parts.releaseAll()
	}
	if call.memory != nil {
		call.memory.put(len(call.body.b))
		call.memory = nil
	}
	call.body.b = nil
}

// outcome is the result of calling a handler.
type outcome struct {
	reply   []byte
	code    Code // 0: success, with reply
	flags   uint8
	text    string
	details []byte
}

// handleAndAnswer calls the handler and queues the answer, even if the handler does not return. On
// a goroutine other than the loop's it requests a flush.
func (call *serverCall) handleAndAnswer() {
	scratch := getBuffer()
	var o outcome
	defer func() {
		call.behind = call.stillRuns()
		if call.queueAnswer(&o, scratch.b) && !call.h.inline {
			call.c.out.requestFlush()
		}
		scratch.put(len(o.reply))
	}()
	tryCall(func() { o = call.invokeHandler(scratch.b) }, func(why *PanicError) {
		// the reason is not sent to the client: it may be private
		o = outcome{code: CodeInternal, text: "the handler has panicked"}
		if !call.h.inline || why.Value != errGoexit { //nolint:errorlint // it is that very value; the loop reports its end
			call.c.s.reportPanic(call.h.m.name, why)
		}
	})
}

// invokeHandler calls the handler, unless the caller has given up.
func (call *serverCall) invokeHandler(scratch []byte) (o outcome) {
	err := call.checkBegin()
	if err != nil {
		o.flags = wire.FlagRefused
	} else {
		call.ownRequest()
		o.reply, err = call.h.invoke(call, scratch)
	}
	if err != nil {
		o.code, o.text, o.details = wireError(err)
	}
	return o
}

// checkBegin returns an error if the handler must not be called: the call has ended, or the client
// takes too few of its answers. It blocks while an answer of the connection waits for room, because
// the handler would add another one, which could not be refused. Before it blocks it copies the
// request, to release the memory of the message, which connections share.
func (call *serverCall) checkBegin() error {
	o := &call.c.out
	answers := !call.h.inline && !call.h.m.items
	if answers && o.answers.Load() > 0 {
		call.ownRequest()
		o.mu.Lock()
		// an error is the context's, which is checked below
		_ = call.awaitLocked(func() bool { return o.answers.Load() == 0 })
		o.mu.Unlock()
	}
	err := call.ctx.Err()
	switch {
	case err != nil:
	case answers && call.c.share.Exceeds():
		err = &Error{Code: CodeOverloaded, Message: "answers wait, because the client does not take them"}
	case call.waited() && call.c.s.draining.Load(): // it may have got its place since
		err = ErrDraining
	}
	return err
}

// givePlaceBack releases the call's place.
func (call *serverCall) givePlaceBack() {
	switch {
	case call.h.inline:
	case call.h.stream != nil:
		call.c.share.Give(call.h.placeKind(), 1)
	default:
		call.c.s.beginWaiting(call.c.share.GiveCall())
	}
}

// undoAdmission reverses the admission of the call.
func (call *serverCall) undoAdmission() {
	switch call.admission {
	case admitted:
		call.givePlaceBack()
	case queued:
		call.c.share.Give(share.Waiting, 1)
	default:
		return
	}
	call.c.s.callAnswered()
}

// queueAnswer queues the answer, and reports whether a flush has to be requested. On a worker it
// waits until there is room.
func (call *serverCall) queueAnswer(o *outcome, scratch []byte) (wake bool) {
	c := call.c
	defer func() {
		if call.behind {
			c.s.callAnswered()
		} else {
			call.undoAdmission()
		}
	}()
	var frame readyFrame
	n := call.fillFrame(&frame, o, scratch)
	frame.encodeLarge(c.out.cuts.on)
	call.stop(call.h.counts)
	c.out.mu.Lock()
	if !call.behind {
		c.out.purse.Requests -= call.bytes
	}
	if call.stream != nil {
		call.stream.endLocked()
	}
	if !call.roomToAnswerLocked(n) {
		if o.reply = nil; frame.isEncoded() {
			frame.body = nil // the handler's memory need not wait
		} else { // the answer may lie in the request
			frame.body = append(scratch[:0], frame.body...)
		}
		if err := call.awaitRoomLocked(n); err != nil {
			o.code = codeOf(err)
			frame.release()
			frame.h = wire.Header{Type: wire.FrameError, Number: uint16(o.code), Call: call.id}
			n = 0
		}
	}
	if cut := call.cutting; cut != nil && len(cut.pieces) > 0 {
		// a goroutine that the handler has left behind sends it
		c.out.dropCutLocked(cut)
		call.cutting = nil
	}
	sent := 0
	if !c.out.ended {
		sent = n
		c.out.putEncodedLocked(&frame)
	} else {
		frame.release()
	}
	c.out.settleLocked()
	if i := call.id.Slot(); i < len(c.calls) && c.calls[i] == call {
		c.calls[i] = nil
	}
	counted := c.endedLocked(call, o.code, sent)
	wake = c.out.wakeLocked()
	c.out.mu.Unlock()
	c.s.countEnd(call, o, counted)
	return wake
}

// fillFrame sets the frame that answers the call, and returns the size of the answer. It puts the
// header that precedes it, if the handler has set one.
func (call *serverCall) fillFrame(frame *readyFrame, o *outcome, scratch []byte) (n int) {
	c, h, reply := call.c, &frame.h, o.reply
	h.Type, h.Call = wire.FrameReply, call.id
	header, trailer := call.putMetadata()
	if n = wire.RequestLen(trailer, reply); o.code == 0 && wire.HeaderLen+max(n, len(header)) > c.limit {
		o.code = CodeTooLarge
		o.text = tooLarge(call.h.m, "the answer", "Client", max(n, len(header)), c.limit, FateAnswered).Message
	}
	if most := call.h.m.cfg.MaxResponse; o.code == 0 && most > 0 && len(reply) > most {
		o.code, o.text = CodeTooLarge, beyondMaxResponse(call.h.m, most, FateAnswered).Message
	}
	if o.code != 0 {
		h.Type, h.Number, h.Flags = wire.FrameError, uint16(o.code), o.flags
		reply = wire.AppendError(scratch[:0], o.text, o.details)
		if wire.HeaderLen+len(reply) > c.limit {
			reply = reply[:0]
		}
		if wire.HeaderLen+wire.RequestLen(trailer, reply) > c.limit {
			trailer = nil
		}
	}
	if len(trailer) > 0 {
		h.Flags |= wire.FlagTrailer
	}
	frame.metadata, frame.body = trailer, reply
	return len(reply)
}

// putMetadata puts the header, if the handler has set one, it was not sent, and the client takes as
// much. It returns the header, and the trailer, which belongs to the answer. The header is put as
// soon as it was taken, because a goroutine that the handler has left behind may send an item.
func (call *serverCall) putMetadata() (header, trailer []byte) {
	c := call.c
	if c.version < 2 || call.ctx.meta.Load() == nil {
		return nil, nil
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	header, trailer = call.ctx.takeAll()
	if len(header) > 0 && wire.HeaderLen+len(header) <= c.limit && !c.out.ended {
		c.out.putLocked(wire.Header{Type: wire.FrameHeader, Call: call.id}, header)
	}
	return header, trailer
}

// roomToAnswerLocked reports whether an answer of n bytes may be put now. That of an OnLoop handler
// always may: its request was not read before there was room, and nothing is read before there is
// room again. So may the end of a stream, and of a call without a place, which are small.
func (call *serverCall) roomToAnswerLocked(n int) bool {
	o := &call.c.out
	return o.ended || call.h.inline || call.h.m.items || call.admission != admitted || o.roomLocked(wire.HeaderLen+n)
}

// awaitRoomLocked waits until an answer of n bytes may be put. It drops the request first. If the
// call's context ends before there is room, it returns the context's error.
func (call *serverCall) awaitRoomLocked(n int) error {
	o := &call.c.out
	o.answers.Add(1)
	call.c.share.Waits(1)
	if !call.behind {
		call.releaseRequest()
	}
	err := call.awaitLocked(func() bool { return call.roomToAnswerLocked(n) })
	call.c.share.Waits(-1)
	if o.answers.Add(-1) == 0 {
		o.releaseLocked() // wakes calls that have not begun
	}
	return err
}

// awaitLocked waits until holds, which depends on out, returns true. It returns the error of the
// call's context if that ends first.
func (call *serverCall) awaitLocked(holds func() bool) error {
	o := &call.c.out
	if call.room == nil {
		call.room = make(chan struct{}, 1)
	}
	for !holds() {
		if err := call.ctx.Err(); err != nil {
			return err
		}
		o.awaitLocked(&call.waiter)
		o.mu.Unlock()
		_ = call.awaitChange() // the context has the error
		o.mu.Lock()
	}
	return nil
}

// maxStreamWindow is the upper bound of a stream's window.
const maxStreamWindow = 1 << 31

// widenWindow lets more of a stream be sent. It is called on the loop.
func (call *serverCall) widenWindow(n uint32) error {
	out := &call.c.out
	out.mu.Lock()
	defer out.mu.Unlock()
	if !call.h.m.items {
		return violationError("a window for call %#x, which is no stream", call.id)
	}
	if call.window += int64(n); n == 0 || call.window > maxStreamWindow {
		return violationError("a window of %d bytes", call.window)
	}
	call.c.wakes.add(call.room)
	return nil
}
