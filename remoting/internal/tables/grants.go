package tables

import (
	"reflect"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
)

// Grants are the actors of this node that a peer may reach because they have sent it something as
// its sender, or because they were spawned for it. It is bounded: those that have sent nothing for
// long make room. It belongs to the peer's mutex.
type Grants struct {
	last         string   // the latest sender: most messages are of one that has sent before ...
	lastIs       identity // ... and what it was
	young, older map[string]grant
}

// Accesses are what a peer may do, a bit each.
type Accesses uint8

// grant is for one actor, and not for another one that gets its name later.
type grant struct {
	to     identity
	access Accesses
}

// identity says which process had a name. It keeps no actor in memory that has stopped.
type identity struct {
	actor weak.Pointer[actor.ActorProcess]
	other actor.Process
}

func identify(p actor.Process) identity {
	if a, ok := p.(*actor.ActorProcess); ok {
		return identity{actor: weak.Make(a)}
	}
	return identity{other: p}
}

// is reports whether p is that process. Of those that are no pointers one is as good as another.
func (i *identity) is(p actor.Process) bool {
	if a, ok := p.(*actor.ActorProcess); ok {
		return i.actor.Value() == a
	}
	t := reflect.TypeOf(p)
	return reflect.TypeOf(i.other) == t && (t.Kind() != reflect.Pointer || i.other == p)
}

// grantsMost is half of how many actors a peer may reach in this way.
const grantsMost = 1 << 14

// Sent notes that a local actor, which is this process, has sent the peer a message, and grants
// reach.
func (g *Grants) Sent(id string, p actor.Process, reach Accesses) {
	if id == g.last && g.lastIs.is(p) {
		return
	}
	to, ok := g.young[id]
	if !ok || !to.to.is(p) {
		to = g.add(id, p, reach)
	}
	g.last, g.lastIs = id, to.to
}

// Add grants something, besides what is granted already.
func (g *Grants) Add(id string, p actor.Process, access Accesses) { g.add(id, p, access) }

func (g *Grants) add(id string, p actor.Process, access Accesses) grant {
	was, ok := g.young[id]
	if !ok {
		was = g.older[id]
	}
	if was.to.is(p) {
		access |= was.access
	}
	if len(g.young) >= grantsMost {
		g.older, g.young, g.last = g.young, nil, ""
	}
	if g.young == nil {
		g.young = make(map[string]grant)
	}
	now := grant{identify(p), access}
	g.young[id] = now
	return now
}

// Has reports whether something is granted to the process of a name.
func (g *Grants) Has(id string, p actor.Process, access Accesses) bool {
	now, ok := g.young[id]
	if !ok {
		now = g.older[id]
	}
	return now.access&access != 0 && now.to.is(p)
}
