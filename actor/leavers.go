package actor

import (
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
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
// that, until its context ends. left may be called at any time, and more than once. Without a loop
// OnShutdown does nothing.
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

// shutDown notifies the actors.
func (l *leavers) shutDown(root *actor.RootContext) {
	l.begun = true
	for _, n := range slices.Sorted(maps.Keys(l.waiting)) {
		root.Send(l.waiting[n].pid, l.waiting[n].msg)
	}
}
