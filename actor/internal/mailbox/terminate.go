package mailbox

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// An actor that fails at every message would be restarted by its supervisor, then stopped, would
// fail at that, and be restarted again, without a pause and without end: Proto.Actor ends an actor
// only through its code. So the number of restarts is bounded, and an actor that fails as it stops
// is ended without its code (terminate).

// maxRestarts is how often an actor is restarted in restartsIn without having received a message of
// anybody's. It is the bound of Proto.Actor's default supervisor, here for all of them: some would
// occupy the loop.
const (
	maxRestarts = 10
	restartsIn  = 10 * time.Second
)

// rare is the state of a mailbox that only a watched, restarted or stopped actor needs.
type rare struct {
	// the registered process when Stop came; not nil: the actor may be gone after any system
	// message
	process  actor.Process
	watchers watchers
	restarts int // since the last message
	since    time.Time
}

// rareState returns the state that few actors need, and makes it if there is none.
func (m *Mailbox) rareState() *rare {
	if m.rare == nil {
		m.rare = new(rare)
	}
	return m.rare
}

// isStopping reports whether the actor was asked to stop.
func (m *Mailbox) isStopping() bool { return m.rare != nil && m.rare.process != nil }

// countRestart counts a restart, and returns how many there were.
func (r *rare) countRestart(now time.Time) int {
	if r.restarts == 0 || now.Sub(r.since) >= restartsIn {
		r.restarts, r.since = 0, now
	}
	r.restarts++
	return r.restarts
}

// terminateActor ends the actor without its code. What Proto.Actor does at the end of an actor is
// done here: it leaves the processes, its children are stopped, and those who watch it are
// notified.
func (m *Mailbox) terminateActor() {
	at, ok := m.invoker.(actor.Context)
	if !ok || m.closed {
		return
	}
	sys, self := at.ActorSystem(), at.Self()
	pids := m.rareState().watchers.watcherPIDs()
	if p := at.Parent(); p != nil {
		pids = append(pids, p)
	}
	children := at.Children()
	if p, _ := sys.ProcessRegistry.GetLocal(self.Id); p == m.born {
		sys.ProcessRegistry.Remove(self)
	}
	m.markClosed(at)
	at.CancelReceiveTimeout()
	for _, child := range children {
		m.callUser("stop of a child of", func() { sys.Root.Stop(child) })
	}
	for _, pid := range pids {
		m.callUser("watcher of", func() {
			p, _ := sys.ProcessRegistry.Get(pid)
			p.SendSystemMessage(pid, &actor.Terminated{Who: self})
		})
	}
}

// systemLate handles a lifecycle message that comes after the actor has stopped: it must not begin
// again.
func (m *Mailbox) systemLate(msg any) {
	w, ok := msg.(*actor.Watch)
	if !ok {
		return
	}
	at := m.invoker.(Place)
	m.callUser("watcher of", func() {
		p, _ := at.ActorSystem().ProcessRegistry.Get(w.Watcher)
		p.SendSystemMessage(w.Watcher, &actor.Terminated{Who: at.Self()})
	})
}

// watchers lists the watchers of the actor. Proto.Actor keeps them private. It is a list of the
// requests, because most actors have one watcher, and a map costs more than the rest of a mailbox.
type watchers []watch

type watch struct {
	pid *actor.PID
	on  bool // Watch, not Unwatch
}

// noteWatch takes note of a Watch, or of an Unwatch.
func (w *watchers) noteWatch(pid *actor.PID, on bool) {
	if n := len(*w); n == cap(*w) && n >= 8 {
		pids := w.watcherPIDs()
		*w = make(watchers, 0, 2*len(pids)+8)
		for _, pid := range pids {
			*w = append(*w, watch{pid, true})
		}
	}
	*w = append(*w, watch{pid, on})
}

// watcherPIDs returns the PIDs of the watching actors.
func (w *watchers) watcherPIDs() (pids []*actor.PID) {
	type key struct{ address, id string }
	on := make(map[key]bool, len(*w))
	for _, a := range *w {
		on[key{a.pid.Address, a.pid.Id}] = a.on
	}
	for _, a := range *w {
		if k := (key{a.pid.Address, a.pid.Id}); on[k] {
			on[k] = false
			pids = append(pids, a.pid)
		}
	}
	return pids
}
