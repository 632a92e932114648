package remoting

import (
	"maps"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// futures are this node's futures that wait for answers of one peer. They belong to the peer's
// mutex.
//
// Each request has a token, which travels as the RequestId of its sender's PID. Who has it may
// answer, once: the peer that was asked, or a node that this one has forwarded the request to.
// Nobody can guess it.
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
	token  uint32
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

// token is that of a future, or a new one: random.
func (f *futures) token(id string, random func() uint64) uint32 {
	if r, ok := f.m[id]; ok {
		return r.token
	}
	return uint32(random()) | 1 // 0 is none
}

// find returns a future, for who has its token.
func (f *futures) find(id string, token uint32) (r request, ok bool) {
	r, ok = f.m[id]
	return r, ok && r.token == token
}

// take removes a future, for who has its token.
func (f *futures) take(id string, token uint32) (r request, ok bool) {
	if r, ok = f.find(id, token); ok {
		delete(f.m, id)
	}
	return r, ok
}

// elsewhere does what with each peer's futures until it returns true: the request of a future may
// have been forwarded to another node than the one that was asked.
func (n *Node) elsewhere(id string, token uint32, what func(*futures) (found bool)) {
	if token == 0 || !n.alive(id) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers { // at most one has that token
		p.mu.Lock()
		found := what(&p.futures)
		p.mu.Unlock()
		if found {
			return
		}
	}
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
