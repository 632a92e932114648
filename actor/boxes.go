package actor

import (
	"maps"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"

	"github.com/rdmactor/rdmactor/eventloop"
)

// boxes finds the mailbox behind a PID, for all actors of one ActorSystem that have one of ours. It is the system's extension, so
// that it needs no Runtime and dies with the system.
type boxes struct {
	alarm *eventloop.Alarm // of all loops of the system's runtimes

	mu  sync.RWMutex
	box map[string]*mailbox      // by PID.Id
	due map[string]actor.Process // by PID.Id: who is being spawned with a mailbox of ours; what stays has another
	max int                      // of due, before those who are gone are looked for
}

var (
	boxesID = extensions.NextExtensionID()
	// boxesMu: the system's table of extensions has no lock of its own.
	boxesMu sync.RWMutex
)

// ExtensionID is for the ActorSystem's table of extensions.
func (b *boxes) ExtensionID() extensions.ExtensionID { return boxesID }

// boxesOf is the system's boxes, made by the first who asks.
func boxesOf(sys *actor.ActorSystem) *boxes {
	boxesMu.RLock()
	b, ok := sys.Extensions.Get(boxesID).(*boxes)
	boxesMu.RUnlock()
	if ok {
		return b
	}
	boxesMu.Lock()
	defer boxesMu.Unlock()
	if b, ok = sys.Extensions.Get(boxesID).(*boxes); !ok {
		b = &boxes{alarm: eventloop.NewAlarm(), box: make(map[string]*mailbox), due: make(map[string]actor.Process)}
		sys.Extensions.Register(b)
	}
	return b
}

func (b *boxes) add(id string, m *mailbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.box[id] = m
	delete(b.due, id)
}

// expect notes that an actor which is being spawned shall have a mailbox of ours.
func (b *boxes) expect(ctx actor.Context) {
	registry := ctx.ActorSystem().ProcessRegistry
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.due) >= b.max {
		maps.DeleteFunc(b.due, func(id string, was actor.Process) bool { return !same(registry, id, was) })
		b.max = 2*len(b.due) + 16
	}
	b.due[ctx.Self().Id], _ = registry.GetLocal(ctx.Self().Id)
}

// missing reports whether an actor that should have a mailbox of ours was spawned with another.
func (b *boxes) missing(registry *actor.ProcessRegistryValue, id string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	was, ok := b.due[id]
	return ok && same(registry, id, was)
}

// same reports whether the actor of that name is still the one that was.
func same(registry *actor.ProcessRegistryValue, id string, was actor.Process) bool {
	is, ok := registry.GetLocal(id)
	return ok && is == was
}

// remove forgets m, unless the id has a new owner.
func (b *boxes) remove(id string, m *mailbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.box[id] == m {
		delete(b.box, id)
	}
}

func (b *boxes) get(id string) *mailbox {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.box[id]
}

// of lists the mailboxes whose home is l.
func (b *boxes) of(l *loop) (ms []*mailbox) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, m := range b.box {
		if m.home == home(l) {
			ms = append(ms, m)
		}
	}
	return ms
}

// box is the mailbox behind pid; nil when it is none of ours (Proto.Actor's default mailbox, a future, a remote actor). Who sends to
// such a one on a loop calls the loop's Handoff itself.
func (rt *Runtime) box(pid *actor.PID) *mailbox {
	if pid == nil || !rt.local(pid) {
		return nil
	}
	return rt.boxes.get(pid.Id)
}

// boxOf is the mailbox of an actor that one of the loops runs, for deliver on that loop; nil for every other PID.
func (rt *Runtime) boxOf(pid *actor.PID) *mailbox {
	if m := rt.box(pid); m != nil && m.loop() != nil {
		return m
	}
	return nil
}

// loop is the loop that runs the actor; nil off the loops.
func (m *mailbox) loop() *loop {
	l, _ := m.home.(*loop)
	return l
}
