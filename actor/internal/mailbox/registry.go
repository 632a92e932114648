package mailbox

import (
	"maps"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Registry finds the mailbox behind a PID, for those actors of one ActorSystem that have a Mailbox
// of this package. It is an extension of the system, so that it is freed with the system. Its
// methods are for any goroutine.
type Registry struct {
	sys   *actor.ActorSystem
	alarm *eventloop.Alarm

	mu  sync.RWMutex
	box map[string]*Mailbox // keyed by PID.Id
	// keyed by PID.Id: actors that are being spawned with a mailbox of this package; entries that
	// stay have another
	due map[string]actor.Process
	max int // of due, before those who are gone are looked for
}

var (
	extensionID = extensions.NextExtensionID()
	// extensionsMu: the system's table of extensions has no lock.
	extensionsMu sync.RWMutex
)

// ExtensionID is for the ActorSystem's table of extensions.
func (r *Registry) ExtensionID() extensions.ExtensionID { return extensionID }

// RegistryOf returns the system's registry. The first call makes it. Any goroutine.
func RegistryOf(sys *actor.ActorSystem) *Registry {
	extensionsMu.RLock()
	r, ok := sys.Extensions.Get(extensionID).(*Registry)
	extensionsMu.RUnlock()
	if ok {
		return r
	}
	extensionsMu.Lock()
	defer extensionsMu.Unlock()
	if r, ok = sys.Extensions.Get(extensionID).(*Registry); !ok {
		r = &Registry{sys: sys, alarm: eventloop.NewAlarm(), box: make(map[string]*Mailbox), due: make(map[string]actor.Process)}
		sys.Extensions.Register(r)
	}
	return r
}

// Alarm is that of all event loops which run actors of the system.
func (r *Registry) Alarm() *eventloop.Alarm { return r.alarm }

// Place is where an actor is: the part of a context that this package needs.
type Place interface {
	Self() *actor.PID
	ActorSystem() *actor.ActorSystem
}

// Find is the mailbox behind pid; nil if it is not of this package (Proto.Actor's default mailbox,
// a future, a remote actor). Code on a loop that sends to such an actor has to call the event
// loop's Handoff itself.
func (r *Registry) Find(pid *actor.PID) *Mailbox {
	if pid == nil || !r.Local(pid) {
		return nil
	}
	return r.get(pid.Id)
}

// FindOf is the mailbox of a process that the system has under the name id; nil if it is not of
// this package.
func (r *Registry) FindOf(id string, process actor.Process) *Mailbox {
	if m := r.get(id); m != nil && m.born == process {
		return m
	}
	return nil
}

// Undone reports whether pid's actor was spawned with Option, but has another mailbox.
func (r *Registry) Undone(pid *actor.PID) bool {
	if r.Find(pid) != nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	was, ok := r.due[pid.Id]
	return ok && r.isSameActor(pid.Id, was)
}

// expectMailbox notes that an actor which is being spawned shall have a mailbox of this package.
func (r *Registry) expectMailbox(at Place) {
	id := at.Self().Id
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) >= r.max {
		maps.DeleteFunc(r.due, func(id string, was actor.Process) bool { return !r.isSameActor(id, was) })
		r.max = 2*len(r.due) + 16
	}
	r.due[id], _ = r.sys.ProcessRegistry.GetLocal(id)
}

// isSameActor reports whether the actor of that name is the one that it was.
func (r *Registry) isSameActor(id string, was actor.Process) bool {
	is, ok := r.sys.ProcessRegistry.GetLocal(id)
	return ok && is == was
}

func (r *Registry) add(id string, m *Mailbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.box[id] = m
	delete(r.due, id)
}

// remove forgets m, unless the id has a new owner.
func (r *Registry) remove(id string, m *Mailbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.box[id] == m {
		delete(r.box, id)
	}
}

func (r *Registry) get(id string) *Mailbox {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.box[id]
}

// nonhost is the address of an ActorSystem before Proto.Actor's remote.Start gives it another. PIDs
// keep the address with which they were made, so both addresses count as this system's, here and in
// Same.
const nonhost = "nonhost"

// Local reports whether pid names an actor of this ActorSystem, alive or dead.
func (r *Registry) Local(pid *actor.PID) bool {
	return pid.Address == r.sys.Address() || pid.Address == nonhost
}

// Same reports whether two PIDs name the same actor.
func (r *Registry) Same(a, b *actor.PID) bool {
	return a == b || a.Id == b.Id && a.RequestId == b.RequestId && (a.Address == b.Address || r.Local(a) && r.Local(b))
}
