package rpc

import (
	"fmt"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// This file admits the requests of a client: it checks their limits, gives them their places, and
// begins their calls, on the loop or on a worker.

// handleCall handles a request: it is admitted or rejected.
func (c *serverConn) handleCall(h wire.Header, body []byte) error {
	if int(h.Number) >= len(c.methods) {
		c.rejectCall(h.Call, CodeUnknownMethod, "the method was not declared", &c.s.ledger.unknown, forMethod)
		return nil
	}
	hd := c.methods[h.Number]
	counts := &c.s.ledger.unknown
	if hd != nil {
		counts = hd.counts
	}
	switch {
	case h.Call.Slot() >= c.s.cfg.MaxCalls:
		c.rejectCall(h.Call, CodeOverloaded, "", counts, forLimit)
		return nil
	case hd == nil:
		c.rejectCall(h.Call, CodeUnknownMethod, "", counts, forMethod)
		return nil
	case hd.m.callFlags() != c.kindOf(h):
		c.rejectCall(h.Call, CodeUnknownMethod, "one side has it as a stream", counts, forMethod)
		return nil
	}
	var metadata []byte
	if h.Flags&wire.FlagMetadata != 0 {
		var ok bool
		if metadata, body, ok = wire.CutMetadata(body); !ok {
			c.rejectCall(h.Call, CodeBadMessage, "metadata", counts, forMessage)
			return nil
		}
	}
	size, follows, ok := c.announcedSize(h, hd, body)
	if !ok {
		c.rejectCall(h.Call, CodeBadMessage, "the length of the request in parts", counts, forMessage)
		return nil
	}
	if why := hd.tooLarge(size, c.s.cfg.MaxMessage); why != "" {
		c.rejectCall(h.Call, CodeTooLarge, why, counts, forMessage)
		return nil
	}
	code := c.s.admitCall(c, hd)
	// a larger request, which has not come in parts, would keep memory that connections share
	queue := code == CodeOverloaded && (follows || len(body) <= copyOnLoop) && c.takeQueuePlace(hd)
	if code != 0 && !queue {
		c.rejectCall(h.Call, code, c.s.noPlace(code, hd), counts, reasonOf(code))
		return nil
	}
	if hd.inline && !follows {
		return c.callOnLoop(h, hd, metadata, body)
	}
	var call *serverCall
	if queue && !follows {
		q := new(queuedCall)
		call, q.serverCall.place = &q.serverCall, &q.place
	} else {
		call = new(serverCall)
	}
	call.c, call.h, call.id = c, hd, h.Call
	if queue {
		call.admission = queued
	}
	call.initCall(h, append([]byte(nil), metadata...))
	if follows {
		call.arrival = &arrival{parts: parts{total: size}}
	} else if call.body.retainMessage(c.reading, body) {
		call.copyRequest()
	}
	call.size = len(metadata) + size
	call.bytes = call.size
	if call.memory != nil {
		call.bytes = len(metadata) + cap(call.memory.b)
	}
	if follows {
		call.bytes = max(call.bytes, arrivalBytes)
	}
	if hd.m.stream {
		call.window, call.room = c.window, make(chan struct{}, 1)
	}
	if hd.m.sends {
		call.initStream()
	}
	if !c.enterCall(call) {
		call.releaseRequest()
		call.undoAdmission()
		c.rejectCall(h.Call, CodeOverloaded, fmt.Sprintf("no memory for the request: all calls share %d bytes (ServerConfig.Memory)", c.s.cfg.Memory), counts, forMemory)
		return nil
	}
	if follows && size > 0 {
		c.awaitParts(call)
	} else {
		c.beginCall(call)
	}
	return nil
}

// kindOf returns the flags for the kind of a call.
func (c *serverConn) kindOf(h wire.Header) uint8 {
	if c.version < 2 {
		return h.Flags & wire.FlagStream
	}
	return h.Flags & (wire.FlagStream | wire.FlagSends)
}

// checkRoom reports whether there is room for further answers, as a request, or the last part of
// one, may have an answer; and whether the slot of a request is taken by a call that was not
// answered. No handler may be called for such a request, wherever it runs.
func (c *serverConn) checkRoom(h *wire.Header, body []byte) (lets, taken bool) {
	if c.needs = 0; h.Type == wire.FrameCall {
		c.needs = c.memoryFor(h, body)
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if lets = c.out.requestRoomLocked(c.needs); h.Type != wire.FrameCall {
		return lets, false
	}
	i := h.Call.Slot()
	taken = i < len(c.calls) && c.calls[i] != nil
	if c.onLoop = nil; lets && !taken && !c.followsInParts(h) && int(h.Number) < len(c.methods) {
		if hd := c.methods[h.Number]; hd != nil && hd.inline {
			c.onLoop = hd.counts
		}
	}
	return lets, taken
}

// enterCall registers a call, if there is memory for its request.
func (c *serverConn) enterCall(call *serverCall) (ok bool) {
	i := call.id.Slot()
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	for len(c.calls) <= i {
		c.calls = append(c.calls, nil)
	}
	if !c.out.mayLocked(call.bytes) {
		return false
	}
	c.calls[i] = call
	c.out.purse.Requests += call.bytes
	c.begunLocked(call)
	return true
}

// callOnLoop calls a handler that does not block. Its call is not put into calls, because no frame
// is read before it was answered.
func (c *serverConn) callOnLoop(h wire.Header, hd *handler, metadata, body []byte) error {
	call := c.inline
	if call == nil {
		call = &serverCall{c: c}
	}
	c.inline = nil
	call.h, call.id = hd, h.Call
	call.initCall(h, metadata)
	call.body.b = body
	call.size = len(metadata) + len(body)
	if t := c.tallyOf(hd); t != nil {
		c.timeCall(call, t.begun+1)
	}
	defer c.recycleCall(call)
	c.local.Do(hd.task, call.handleAndAnswer)
	return nil
}

// recycleCall ends the call that callOnLoop began. It keeps it for reuse, if it may.
func (c *serverConn) recycleCall(call *serverCall) {
	if call.behind || call.ctx.wasMade() { // a goroutine may still wait for it
		call.ctx.cancelContext(errHandled)
		return
	}
	call.ctx = callContext{}
	c.inline = call
}

// rejectCall answers a call that no handler will get, and counts it.
func (c *serverConn) rejectCall(id wire.CallID, code Code, text string, counts *methodCounts, why reason) {
	counts.refused[why].Add(1)
	var body []byte
	if text != "" {
		body = wire.AppendError(nil, text, nil)
	}
	c.out.mu.Lock()
	c.onLoop = nil
	c.out.putLocked(wire.Header{Type: wire.FrameError, Flags: wire.FlagRefused, Number: uint16(code), Call: id}, body)
	c.out.mu.Unlock()
}

// beginCall queues a call for a place or a worker, or handles that of an OnLoop handler.
func (c *serverConn) beginCall(call *serverCall) {
	switch {
	case call.admission == queued:
		c.awaitPlace(call)
	case call.h.inline:
		c.local.Do(call.h.task, call.runCall)
	case c.tail == nil:
		c.head, c.tail = call, call
	default:
		c.tail.next, c.tail = call, call
	}
}
