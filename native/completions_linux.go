//go:build amd64 || arm64

package native

import (
	"encoding/binary"
	"slices"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// completions is a hca.Completions.
type completions struct {
	a       *adapter
	cq      uintptr
	mem     []byte // polled
	next, n int
	seen    int       // how many further calls of Empty trust the last, empty poll
	made    []hca.CQE // for sends that the library has refused

	foreseen bool    // it is in adapter.foreseen
	only     uintptr // argument of the request for the foreseen event
	ahead    bool    // the foreseen event was requested, and has not arrived
	refusal  error   // error of that request
}

// polled is the largest number of completions that one call returns.
const polled = 32

// pollIfEmpty polls if no polled completion is left.
func (q *completions) pollIfEmpty() bool {
	if q.next < q.n {
		return true
	}
	if q.foreseen {
		q.a.pollAndRequest(0, q)
		return q.next < q.n
	}
	p := q.a.page
	p.calls[0] = q.pollCall()
	p.makeCalls(1)
	return q.handlePolled(p.calls[0].ret)
}

// pollCall returns the call that polls.
func (q *completions) pollCall() cCall {
	return cCall{fn: peek[uintptr](q.a.ctx, contextPollCQ), args: [6]uintptr{q.cq, polled, addressOf(q.mem)}}
}

// handlePolled handles the result of that call.
func (q *completions) handlePolled(ret uintptr) bool {
	q.next, q.n, q.seen = 0, min(max(int(int32(ret)), 0), polled), 0
	return q.n > 0
}

// askCall returns the call that requests an event.
func (q *completions) askCall(only uintptr) cCall {
	return cCall{fn: peek[uintptr](q.a.ctx, contextReqNotify), args: [6]uintptr{q.cq, only}}
}

// requestEvent requests an event. Completions before the request cause no event, so the queue is
// polled in the same crossing.
func (q *completions) requestEvent(only uintptr) error {
	p, n := q.a.page, 1
	p.calls[0] = q.askCall(only)
	if q.next == q.n {
		p.calls[1] = q.pollCall()
		n = 2
	}
	p.makeCalls(n)
	err := errnoOf(p.calls[0].ret, 0)
	if n == 2 && !q.handlePolled(p.calls[1].ret) {
		q.seen = 1
	}
	return err
}

// Empty reports whether there is no completion. It trusts an empty poll as often as package uverbs
// calls it in a turn: before it requests an event, and afterwards.
func (q *completions) Empty() bool {
	if q.next < q.n || len(q.made) > 0 {
		return false
	}
	if q.seen == 0 && q.pollIfEmpty() {
		return false
	}
	q.seen = max(q.seen-1, 0)
	return true
}

// Take removes the oldest completion. It trusts no earlier poll: when a connection has ended, all
// its completions have to be taken.
func (q *completions) Take(c *hca.CQE) bool {
	if !q.pollIfEmpty() {
		if len(q.made) == 0 {
			return false
		}
		*c = q.made[0]
		q.made = q.made[1:]
		return true
	}
	w := typedAt[hca.WC](q.mem, q.next*sizeOf[hca.WC]())
	q.next++
	*c = hca.CQE{
		Cookie: w.WRID, QPN: w.QPNum, Status: hca.StatusOf(w.Status), Bytes: w.ByteLen, SrcQPN: w.SrcQP, GRH: w.WCFlags&hca.WCGRH != 0,
		Last: q.next == q.n && q.n < polled && len(q.made) == 0,
	}
	switch { // the two share memory
	case w.WCFlags&hca.WCWithImm != 0:
		c.HasImm, c.Imm = true, binary.BigEndian.Uint32(w.Ex[:])
	case w.WCFlags&hca.WCWithInv != 0:
		c.InvalidatedRKey = binary.NativeEndian.Uint32(w.Ex[:])
	}
	c.Write = c.Status == verbs.StatusSuccess && w.Opcode == hca.WCRecvWrite
	return true
}

// Close does nothing: the queue belongs to the library.
func (q *completions) Close() error { return nil }

// Foresee makes the next post of sends, or the next call of Empty, poll the queue and request the
// event.
func (a *adapter) Foresee(_ hca.Handle, queue hca.Completions, solicitedOnly bool) {
	q := queue.(*completions)
	q.only, q.ahead = bitOf(solicitedOnly), false
	if q.next == q.n && !q.foreseen {
		q.foreseen = true
		a.foreseen = append(a.foreseen, q)
	}
}

func bitOf(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// removeForeseen removes a queue from the foreseen ones.
func (a *adapter) removeForeseen(q *completions) {
	if q.foreseen {
		q.foreseen = false
		i := slices.Index(a.foreseen, q)
		a.foreseen = slices.Delete(a.foreseen, i, i+1)
	}
}

// crossAnd makes the first n calls, and polls a foreseen queue in the same crossing. Most loops
// have one queue.
func (a *adapter) crossAnd(n int) {
	if len(a.foreseen) > 0 && n+3 <= maxCalls {
		a.pollAndRequest(n, a.foreseen[0])
		return
	}
	a.page.makeCalls(n)
}

// pollAndRequest makes the first n calls, polls the queue, and, if it is empty, requests an event
// and polls once more, all in one crossing.
func (a *adapter) pollAndRequest(n int, q *completions) {
	a.removeForeseen(q)
	p := a.page
	if q.next < q.n {
		p.makeCalls(n)
		return
	}
	p.calls[n], p.calls[n+1], p.calls[n+2] = q.pollCall(), q.askCall(q.only), q.pollCall()
	p.crossUnless(n+3, 2)
	if q.handlePolled(p.calls[n].ret) {
		return
	}
	q.ahead, q.refusal = true, errnoOf(p.calls[n+1].ret, 0)
	if !q.handlePolled(p.calls[n+2].ret) {
		q.seen = 2
	}
}

// ReqNotify requests an event, unless pollAndRequest has done so.
func (a *adapter) ReqNotify(_ hca.Handle, queue hca.Completions, solicitedOnly bool) error {
	q, only := queue.(*completions), bitOf(solicitedOnly)
	a.removeForeseen(q)
	if q.ahead && q.only == only {
		q.ahead = false
		return q.refusal
	}
	return q.requestEvent(only)
}

// removeRefs removes references to a queue that is being destroyed.
func (q *completions) removeRefs() {
	q.a.removeForeseen(q)
	if q.a.recent == q {
		q.a.recent = nil
	}
}
