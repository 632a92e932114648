package actor

import (
	"maps"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// An actor that panics in *actor.Stopped has left the system's processes by then, but Proto.Actor
// does not notify its watchers. Only the supervisor's decision about the panic is published. So the
// runtime listens for those decisions, and notifies the watchers on its loops: identifiers, and
// actors that have called Local.Watch.

// actorFailed handles an event of the ActorSystem's EventStream. Any goroutine may call it.
func (rt *Runtime) actorFailed(ev any) {
	e, ok := ev.(*actor.SupervisorEvent)
	if !ok {
		return
	}
	if _, alive := rt.sys.ProcessRegistry.GetLocal(e.Child.Id); alive {
		return
	}
	for _, l := range rt.loops {
		if l.gone.add(e.Child) && l.el.Post(l.reportGone) != nil {
			l.gone.take() // the loop has ended, so no watcher is left
		}
	}
}

// reportGone notifies the watchers of the actors in l.gone, however many there are, in one pass.
func (l *loop) reportGone() {
	gone := l.gone.take()
	watched := make(map[*mailbox.Mailbox]*actor.PID)
	note := func(watcher *mailbox.Mailbox, pid *actor.PID) {
		if pid != nil && gone[pid.Id] != nil && l.rt.registry.Same(gone[pid.Id], pid) {
			watched[watcher] = pid
		}
	}
	for it := range l.ids {
		note(it.box, it.owner.pid)
	}
	for watcher, pid := range l.watchers {
		note(watcher, pid)
	}
	byName := func(a, b *mailbox.Mailbox) int { return strings.Compare(a.PID().Id, b.PID().Id) }
	for _, watcher := range slices.SortedFunc(maps.Keys(watched), byName) {
		watcher.PostSystemMessage(&actor.Terminated{Who: watched[watcher]})
	}
}

// Watch is ctx.Watch for one actor, whose failure while it stops is also reported to the calling
// actor (by actor.Terminated). Without a loop it is only ctx.Watch.
func (l Local) Watch(ctx actor.Context, pid *actor.PID) {
	ctx.Watch(pid)
	if l.l != nil {
		if l.l.watchers == nil {
			l.l.watchers = make(map[*mailbox.Mailbox]*actor.PID)
		}
		l.l.watchers[mailbox.Of(ctx)] = pid
	}
}

// Unwatch ends a Watch. An actor calls it before it has stopped.
func (l Local) Unwatch(ctx actor.Context, pid *actor.PID) {
	ctx.Unwatch(pid)
	if l.l != nil {
		delete(l.l.watchers, mailbox.Of(ctx))
	}
}
