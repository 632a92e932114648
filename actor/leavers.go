package actor

import (
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/usercode"
)

// leavers are the actors of a loop that end when the runtime does (Local.OnShutdown). Loop
// goroutine.
type leavers struct {
	begun   bool // Shutdown has begun
	last    uint64
	waiting map[uint64]leaver // in the order of their numbers
}

type leaver struct {
	pid *actor.PID
	msg any
}

// OnShutdown has msg sent to the actor when the runtime's Shutdown begins, or soon if it has begun.
// It is for an actor that may have no identifier at that moment, whose Closed would report it. The
// actor then ends, and calls left behind everything that it sends for its end: Shutdown waits for
// that, until its context ends, but not for an actor that has ended before. left may be called at
// any time, and more than once. Without a loop OnShutdown does nothing.
func (l Local) OnShutdown(msg any) (left func()) {
	if l.l == nil {
		return func() {}
	}
	loop, of := l.l, &l.l.leavers
	of.last++
	n := of.last
	if of.begun {
		loop.rt.sys.Root.Send(l.self, msg)
		return func() {}
	}
	if of.waiting == nil {
		of.waiting = make(map[uint64]leaver)
	}
	of.waiting[n] = leaver{l.self, msg}
	return func() {
		delete(of.waiting, n)
		loop.checkEmptied()
	}
}

// notifyLeavers notifies the actors, and forgets those that have ended without calling left.
func (l *loop) notifyLeavers() {
	of := &l.leavers
	of.begun = true
	usercode.Each(slices.Sorted(maps.Keys(of.waiting)), func(n uint64) {
		who := of.waiting[n]
		if _, alive := l.rt.sys.ProcessRegistry.GetLocal(who.pid.Id); !alive {
			delete(of.waiting, n)
			return
		}
		l.callUser("message to", who.pid.Id, func() { l.rt.sys.Root.Send(who.pid, who.msg) })
	})
}
