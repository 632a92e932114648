package rpc

import (
	"fmt"

	"github.com/rdmactor/rdmactor/rpc/internal/share"
)

// A call for which there is no place may wait for one (ServerConfig.MaxWait). It has its slot, and
// memory for its request. The goroutine that returns a place takes the next call out of the queue
// (share.Account), and gives it to the workers. The loop removes a call whose context ends. expire
// removes those that have waited for too long, or all when the server drains. The goroutine that
// removes a call answers it, so that it is answered once.

// waitingPerPlace is how many calls may wait for each place of MaxCallsInAll.
const waitingPerPlace = 4

// admission is the kind of place that a call has.
type admission uint8

const (
	admitted   admission = iota // a place, if it needs one
	queued                      // a place in the queue
	unadmitted                  // none: parts of its request are still to come
)

// takeQueuePlace takes a place in the queue for a call that finds no other, if it may wait there.
// The call is in flight from then on, so that the last drain frame follows its answer.
func (c *serverConn) takeQueuePlace(h *handler) bool {
	if c.s.cfg.MaxWait <= 0 || h.placeKind() != share.Calls || !c.share.Take(share.Waiting, 1) {
		return false
	}
	c.s.inFlight.Add(1)
	return true
}

// queuedCall is a call with its place in the queue, in one allocation. Most calls have none.
type queuedCall struct {
	serverCall
	place share.Waiter
}

// awaitPlace puts a call into the queue.
func (c *serverConn) awaitPlace(call *serverCall) {
	if call.place == nil { // its request has come in parts
		call.place = new(share.Waiter)
	}
	call.place.Call = call
	if c.share.Await(call.place) {
		c.s.rt.Scheduler().AfterFunc(c.s.cfg.MaxWait, c.s.expire)
	}
	c.s.beginWaiting(c.s.shares.Next())
	if c.s.draining.Load() {
		c.s.expire()
	}
}

// waited reports whether the call has been in the queue.
func (call *serverCall) waited() bool { return call.place != nil }

// beginWaiting gives the workers a call that has got its place, and all others that may have one.
func (s *Server) beginWaiting(w *share.Waiter) {
	for ; w != nil; w = s.shares.Next() {
		call := w.Call.(*serverCall)
		call.admission = admitted
		s.workers.addCalls(call, call)
	}
}

// expire refuses the calls that have waited for MaxWait, or all if the server drains.
func (s *Server) expire() {
	draining := s.draining.Load()
	for {
		w, next := s.shares.Expired(draining)
		if w == nil {
			if next > 0 {
				s.rt.Scheduler().AfterFunc(next, s.expire)
			}
			return
		}
		call := w.Call.(*serverCall)
		err := call.ctx.Err()
		switch {
		case err != nil:
		case draining:
			err = ErrDraining
		default:
			err = &Error{Code: CodeOverloaded, Message: fmt.Sprintf(
				"no place within %v (ServerConfig.MaxWait): the server has %d for calls (MaxCallsInAll), and this client has its share",
				s.cfg.MaxWait, s.cfg.MaxCallsInAll)}
		}
		if call.refuse(err) {
			call.c.out.requestFlush()
		}
	}
}

// noPlace returns the text of the error with a code for a call that finds no place.
func (s *Server) noPlace(code Code, h *handler) string {
	if code != CodeOverloaded {
		return ""
	}
	if h.stream != nil {
		return fmt.Sprintf("the server has %d places for streams, and as many for watches of its health (ServerConfig.MaxStreamsInAll), and this client has its share", s.cfg.MaxStreamsInAll)
	}
	text := fmt.Sprintf("the server has %d places for calls (ServerConfig.MaxCallsInAll), and this client has its share", s.cfg.MaxCallsInAll)
	if s.cfg.MaxWait > 0 {
		text += fmt.Sprintf(", also of the %d places to wait (MaxWait)", waitingPerPlace*s.cfg.MaxCallsInAll)
	}
	return text
}
