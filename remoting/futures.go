package remoting

import (
	"maps"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// futures are this node's futures that wait for answers of one peer. Nobody else can answer them.
// They belong to the peer's mutex.
type futures struct {
	m       map[string]request // by the future's id
	seq     uint64
	sweepAt int // how many there may be before those that are gone are looked for
}

// request is a future's message to the peer.
type request struct {
	target *actor.PID
	future *actor.PID
	proc   actor.Process
	packet uint64 // the number of the packet that it is in
	seq    uint64
}

// futuresMost is how many futures may wait for one peer.
const futuresMost = 1 << 18

// futurePrefix is what the ids of Proto.Actor's futures begin with.
const futurePrefix = "future$"

func isFuture(id string) bool { return strings.HasPrefix(id, futurePrefix) }

// futureOf is the process of a future of this node's; nil: sender is none, or is gone.
func (n *Node) futureOf(sender *actor.PID) actor.Process {
	if sender == nil || !isFuture(sender.Id) || !n.local(sender.Address) {
		return nil
	}
	p, ok := n.sys.ProcessRegistry.GetLocal(sender.Id)
	if !ok {
		return nil
	}
	return p
}

// room reports whether another future may wait. alive says whether a future still does.
func (f *futures) room(alive func(id string) bool) bool {
	if len(f.m) >= f.sweepAt {
		maps.DeleteFunc(f.m, func(id string, _ request) bool { return !alive(id) })
		f.sweepAt = 2*len(f.m) + 1024
	}
	return len(f.m) < futuresMost
}

func (f *futures) add(r request) {
	if f.m == nil {
		f.m = make(map[string]request)
	}
	f.seq++
	r.seq = f.seq
	f.m[r.future.Id] = r
}

// has reports whether a future waits for the peer.
func (f *futures) has(id string) bool {
	_, ok := f.m[id]
	return ok
}

// take removes a future.
func (f *futures) take(id string) (r request, ok bool) {
	if r, ok = f.m[id]; ok {
		delete(f.m, id)
	}
	return r, ok
}

// takeThose removes the futures for which which is true, and returns them in the order of their
// requests.
func (f *futures) takeThose(which func(*request) bool) (those []request) {
	for id, r := range f.m {
		if which(&r) {
			those = append(those, r)
			delete(f.m, id)
		}
	}
	slices.SortFunc(those, func(a, b request) int { return int(a.seq) - int(b.seq) })
	return those
}

// answer gives a future its answer, or what it gets in place of one. False: it waits no more, and
// has a result that must not change.
func (n *Node) answer(r *request, msg any) (waited bool) {
	if p, ok := n.sys.ProcessRegistry.GetLocal(r.future.Id); !ok || p != r.proc {
		return false
	}
	r.proc.SendUserMessage(r.future, msg)
	return true
}
