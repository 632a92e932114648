package remoting

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// host is a node without its peers: its actor system, its configuration, and the bounds over all
// peers. Any goroutine.
type host struct {
	sys   *actor.ActorSystem
	rt    *rdma.Runtime
	cfg   Config
	name  string // the node's; set before there are peers
	own   string // the beginning of the names of its internal actors
	rules atomic.Pointer[rules]

	asking   atomic.Int64 // calls of Config.Admit that have not returned
	spawning atomic.Int64 // Spawns of peers that have not returned
	piping   atomic.Int64 // bytes of answers that are being piped
	down     atomic.Bool  // nothing further is accepted
	leaving  atomic.Bool  // ... because of Shutdown

	shortfall shortfall
	leftovers leftovers
}

// nonhost is the address of an actor system, and of its PIDs, before the node has started.
const nonhost = "nonhost"

// isLocal reports whether an address is this node's own.
func (h *host) isLocal(addr string) bool { return addr == h.name || addr == nonhost }

// hasProcess reports whether this node has a process of that name.
func (h *host) hasProcess(id string) bool {
	_, ok := h.sys.ProcessRegistry.GetLocal(id)
	return ok
}

// futureOf returns the process of a future of this node's; nil: sender is none, or is gone.
func (h *host) futureOf(sender *actor.PID) actor.Process {
	if sender == nil || !tables.IsFuture(sender.Id) || !h.isLocal(sender.Address) {
		return nil
	}
	p, ok := h.sys.ProcessRegistry.GetLocal(sender.Id)
	if !ok {
		return nil
	}
	return p
}

// wirePID converts a PID for a frame: this node's own have no address there.
func (h *host) wirePID(pid *actor.PID) frame.PID {
	switch {
	case pid == nil:
		return frame.PID{}
	case h.isLocal(pid.Address):
		return frame.PID{ID: pid.Id, Request: pid.RequestId}
	}
	return frame.PID{Address: pid.Address, ID: pid.Id, Request: pid.RequestId}
}

// callGuarded passes a message to a local process, which may run user code: a future's result may
// go on to another one, and a mailbox may have a middleware. If that panics, other messages are not
// affected.
func (h *host) callGuarded(to *actor.PID, give func()) {
	defer func() {
		if v := recover(); v != nil {
			h.rt.Logger().Error("remoting: code behind a PID has panicked", "pid", to.Id, "panic", v)
		}
	}()
	give()
}

// deliverTerminated delivers Terminated to a watcher of this node's.
func (h *host) deliverTerminated(w tables.Watch, why actor.TerminatedReason) {
	if p, ok := h.sys.ProcessRegistry.GetLocal(w.Watcher.Id); ok {
		h.callGuarded(w.Watcher, func() { p.SendSystemMessage(w.Watcher, &actor.Terminated{Who: w.Watched, Why: why}) })
	}
}
