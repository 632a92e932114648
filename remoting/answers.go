package remoting

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// answer gives a future its answer, of so many bytes, or what it gets in place of one, of none.
// False: it waits no more, and has a result that must not change.
func (n *Node) answer(r *request, msg any, bytes int) (waited bool) {
	if !r.waits(n) {
		return false
	}
	if piped(r.proc) {
		n.pipe(*r, msg, bytes)
		return true
	}
	n.guarded(r.future, func() { r.proc.SendUserMessage(r.future, msg) })
	return true
}

// waits reports whether the future still does.
func (r *request) waits(n *Node) bool {
	p, ok := n.sys.ProcessRegistry.GetLocal(r.future.Id)
	return ok && p == r.proc
}

// pipingMost bounds the answers of peers that are being piped, each counted as its bytes and
// pipeBytes. What futures get in place of one is small, and no more than there are futures.
const (
	pipingMost = 64 << 20
	pipeBytes  = 1 << 10
)

// pipe answers a future whose result goes on to other actors. It does so on a goroutine, because
// their mailboxes may block. If too many do, the future does not get its answer: it times out.
func (n *Node) pipe(r request, msg any, bytes int) {
	if bytes > 0 {
		bytes += pipeBytes
	}
	if n.piping.Add(int64(bytes)) > pipingMost && bytes > 0 {
		n.piping.Add(-int64(bytes))
		n.rt.Logger().Warn("remoting: an answer is dropped, because those to whom answers are piped do not take them",
			"target", r.target.Id, "peer", r.target.Address, "type", fmt.Sprintf("%T", msg))
		return
	}
	n.rt.Scheduler().Go(func() {
		defer n.piping.Add(-int64(bytes))
		if r.waits(n) {
			n.guarded(r.future, func() { r.proc.SendUserMessage(r.future, msg) })
		}
	})
}

// guarded gives something to a process of this node's for which code of the user's may be called: a
// future's result may go on to another one, and a mailbox may have a middleware. If that panics it
// costs nobody else what is to be given to them.
func (n *Node) guarded(to *actor.PID, give func()) {
	defer func() {
		if v := recover(); v != nil {
			n.rt.Logger().Error("remoting: code behind a PID has panicked", "pid", to.Id, "panic", v)
		}
	}()
	give()
}
