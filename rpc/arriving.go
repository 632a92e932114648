package rpc

import (
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A client of version 3 announces a large request in its call frame, and sends it in parts
// (wire.FlagFollows). The call has memory for the whole request from the announcement on, and its
// place when the last part has arrived: so requests that do not arrive neither take places nor
// delay a Shutdown. Then its handler is called. If there is no place by then, or its context ends
// before, it is refused, like a request that waits for too long.

// arrivalBytes is the least memory that an announced request counts: as much as its call takes.
const arrivalBytes = 2 << 10

// arrival is a request in parts.
type arrival struct {
	parts parts
	// stops watching the call's context while parts are still to come; nil: all have come, or will
	// not; the loop's
	stop func() bool
}

// overdue is sent to a connection when the context of a call ends whose request has not arrived.
type overdue struct{ call *serverCall }

// announcedSize returns the size of a request that follows in parts, and of any other one its own.
// Not ok: the announcement is malformed.
func (c *serverConn) announcedSize(h wire.Header, hd *handler, body []byte) (size int, follows, ok bool) {
	if !c.followsInParts(&h) {
		return len(body), false, true
	}
	size, ok = wire.ParseFollows(body)
	return size, true, ok && !hd.m.sends
}

// followsInParts reports whether the request of a call follows in parts.
func (c *serverConn) followsInParts(h *wire.Header) bool {
	return h.Flags&wire.FlagFollows != 0 && c.version >= 3
}

// memoryFor returns the bytes that the request of a call frame may take.
func (c *serverConn) memoryFor(h *wire.Header, body []byte) (n int) {
	if c.followsInParts(h) {
		n, _ = wire.ParseFollows(body[max(len(body)-wire.FollowsLen, 0):])
		n = max(min(n, c.s.cfg.MaxMessage), arrivalBytes)
	} else {
		n = 4 * max(int(h.Length), smallBuffer) // the buffer may be larger than the request
	}
	if h.Flags&wire.FlagSends != 0 {
		n += c.s.cfg.StreamWindow
	}
	return n
}

// awaitParts waits for the parts of a request. Until then the call has no place.
func (c *serverConn) awaitParts(call *serverCall) {
	call.undoAdmission()
	call.admission = unadmitted
	pid := c.out.pid
	call.arrival.stop = c.s.rt.Scheduler().OnDone(&call.ctx, func() { c.s.sys.Root.Send(pid, &overdue{call}) })
}

// handlePart handles a part of a request or of an item.
func (c *serverConn) handlePart(h wire.Header, body []byte) error {
	c.unread += len(body)
	call := c.findCall(h.Call)
	switch {
	case call == nil: // answered since
		return nil
	case call.stream != nil:
		c.out.mu.Lock()
		defer c.out.mu.Unlock()
		return c.itemLocked(h, body)
	case !call.isArriving():
		return violationError("a part of call %#x, whose request is complete", h.Call)
	}
	p := &call.arrival.parts
	if err := p.add(h.Call, body, p.total); err != nil {
		return err
	}
	if p.n == p.total {
		c.beginArrived(call)
	}
	return nil
}

// isArriving reports whether parts of the request are still to come. It is called on the loop.
func (call *serverCall) isArriving() bool { return call.arrival != nil && call.arrival.stop != nil }

// endCall ends the context of a call, and refuses it if it has no place yet.
func (c *serverConn) endCall(call *serverCall, cause error) {
	if call.isArriving() {
		call.arrival.stop() // the end is handled here
	}
	call.ctx.cancelContext(cause)
	c.rejectOverdue(call)
}

// rejectOverdue refuses a call whose context has ended, if it has no place yet.
func (c *serverConn) rejectOverdue(call *serverCall) {
	if call.isArriving() || call.waited() && c.share.Forget(call.place) {
		call.refuse(call.ctx.Err())
	}
}

// beginArrived begins a call whose request has arrived, if there is a place for it.
func (c *serverConn) beginArrived(call *serverCall) {
	code := c.s.admitCall(c, call.h)
	switch {
	case code == 0:
		call.admission = admitted
	case code == CodeOverloaded && c.takeQueuePlace(call.h):
		call.admission = queued
	default:
		call.refuse(&Error{Code: code, Message: c.s.noPlace(code, call.h)})
		return
	}
	call.arrival.stop()
	call.arrival.stop = nil
	c.beginCall(call)
}

// refuse refuses a call that has its slot, but no place. If it was in the queue, the caller has
// taken it out. If wake is set, a caller other than the loop has to request a flush.
func (call *serverCall) refuse(err error) (wake bool) {
	if call.isArriving() {
		call.arrival.stop()
		call.arrival.stop = nil
	}
	call.c.s.workers.skip(call)
	o := outcome{flags: wire.FlagRefused}
	o.code, o.text, o.details = wireError(err)
	wake = call.queueAnswer(&o, nil)
	call.ctx.cancelContext(errHandled)
	call.releaseRequest()
	return wake
}
