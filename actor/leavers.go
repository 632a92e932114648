package actor

import (
	"cmp"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// leavers are the actors of a loop that end when the runtime does (Local.OnShutdown). Loop
// goroutine.
type leavers struct {
	begun   bool // Shutdown has begun
	last    uint64
	waiting map[string]leaver // by the actors' ids
}

type leaver struct {
	number uint64 // the order in which they are notified
	pid    *actor.PID
	msg    any
}

// OnShutdown sends msg to the actor when the runtime's Shutdown begins, or when a callback has
// ended the loop (Local.Err reports which); soon, if either has happened. It is for an actor that
// may have no identifier then: others get Closed. The actor ends, and calls left after the last
// message that it sends. Shutdown waits for left until its context ends, but not for an actor that
// has already ended. left may be called at any time, and more than once. A later call of the same
// actor, after a restart, replaces the earlier one. Without a loop OnShutdown does nothing.
func (l Local) OnShutdown(msg any) (left func()) {
	if l.l == nil {
		return func() {}
	}
	loop, of := l.l, &l.l.leavers
	if of.begun {
		loop.rt.sys.Root.Send(l.self, msg)
		return func() {}
	}
	if of.waiting == nil {
		of.waiting = make(map[string]leaver)
	}
	of.last++
	of.waiting[l.self.Id] = leaver{of.last, l.self, msg}
	return func() {
		delete(of.waiting, l.self.Id)
		loop.checkEmptied()
	}
}

// forgetLeavers ends the wait for the actors.
func (l *loop) forgetLeavers() {
	clear(l.leavers.waiting)
	l.checkEmptied()
}

// notifyLeavers notifies the actors, and removes those that have ended without calling left.
func (l *loop) notifyLeavers() {
	of := &l.leavers
	of.begun = true
	inOrder := slices.SortedFunc(maps.Values(of.waiting), func(a, b leaver) int { return cmp.Compare(a.number, b.number) })
	for _, who := range inOrder {
		if _, alive := l.rt.sys.ProcessRegistry.GetLocal(who.pid.Id); !alive {
			delete(of.waiting, who.pid.Id)
			continue
		}
		l.tellUser("message to", who.pid.Id, func() { l.rt.sys.Root.Send(who.pid, who.msg) })
	}
}
