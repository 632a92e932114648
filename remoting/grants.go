package remoting

import "github.com/asynkron/protoactor-go/actor"

// grants are the actors of this node that a peer may reach because they have sent it something as
// its sender, or because they were spawned for it. It is bounded: those that have sent nothing for
// long make room. It belongs to the peer's mutex.
type grants struct {
	last         *actor.PID // the latest sender: most messages are of one that has sent before
	young, older map[string]grant
}

// grant is for one actor, and not for another one that gets its name later.
type grant struct {
	proc   actor.Process
	access accesses
}

// grantsMost is half of how many actors a peer may reach in this way.
const grantsMost = 1 << 14

// sent notes that a local actor has sent the peer a message. proc finds its process.
func (g *grants) sent(sender *actor.PID, proc func(id string) (actor.Process, bool)) {
	if sender == g.last {
		return
	}
	g.last = sender
	if _, ok := g.young[sender.Id]; ok {
		return
	}
	if p, ok := proc(sender.Id); ok {
		g.add(sender.Id, grant{p, Reach.bit()})
	}
}

// add grants something, besides what is granted already.
func (g *grants) add(id string, what grant) {
	was, ok := g.young[id]
	if !ok {
		was = g.older[id]
	}
	if was.proc == what.proc {
		what.access |= was.access
	}
	if len(g.young) >= grantsMost {
		g.older, g.young, g.last = g.young, nil, nil
	}
	if g.young == nil {
		g.young = make(map[string]grant)
	}
	g.young[id] = what
}

// find returns what is granted for a name.
func (g *grants) find(id string) (grant, bool) {
	if what, ok := g.young[id]; ok {
		return what, true
	}
	what, ok := g.older[id]
	return what, ok
}
