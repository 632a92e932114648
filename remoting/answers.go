package remoting

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// answerFuture passes a future its answer, of so many bytes, or a substitute, of none. False: it no
// longer waits, and has a result that must not change.
func (h *host) answerFuture(r *tables.Request, msg any, bytes int) (waited bool) {
	if !h.isWaiting(r) {
		return false
	}
	if isPiped(r.Process) {
		h.pipeAnswer(*r, msg, bytes)
		return true
	}
	h.callGuarded(r.Future, func() { r.Process.SendUserMessage(r.Future, msg) })
	return true
}

// answerNotSent answers futures whose requests were not sent.
func (h *host) answerNotSent(list []tables.Request) {
	for i := range list {
		h.answerFuture(&list[i], &actor.DeadLetterResponse{Target: list[i].Target}, 0)
	}
}

// isWaiting reports whether the future still waits for its answer.
func (h *host) isWaiting(r *tables.Request) bool {
	p, ok := h.sys.ProcessRegistry.GetLocal(r.Future.Id)
	return ok && p == r.Process
}

// pipingMost bounds the answers of peers that are being piped, each counted as its bytes and
// pipeBytes. Substitutes for answers are small, and bounded by the number of futures.
const (
	pipingMost = 64 << 20
	pipeBytes  = 1 << 10
)

// pipeAnswer answers a future whose result goes on to other actors. It does so on a goroutine,
// because their mailboxes may block. If too many do, the future does not get its answer: it times
// out.
func (h *host) pipeAnswer(r tables.Request, msg any, bytes int) {
	if bytes > 0 {
		bytes += pipeBytes
	}
	if h.piping.Add(int64(bytes)) > pipingMost && bytes > 0 {
		h.piping.Add(-int64(bytes))
		h.rt.Logger().Warn("remoting: an answer is dropped, because those to whom answers are piped do not take them",
			"target", plain.Quote(r.Target.Id), "peer", plain.Quote(r.Target.Address), "type", fmt.Sprintf("%T", msg))
		return
	}
	h.rt.Scheduler().Go(func() {
		defer h.piping.Add(-int64(bytes))
		if h.isWaiting(&r) {
			h.callGuarded(r.Future, func() { r.Process.SendUserMessage(r.Future, msg) })
		}
	})
}
