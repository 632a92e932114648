package tables

import (
	"net/netip"
	"reflect"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
)

// Grants are the actors of this node that a peer may reach because they have sent it something as
// its sender, or because they were spawned for it. They hold for one incarnation of the peer, on
// all its connections. It is bounded in bytes: actors that have stopped make room, and no others.
// It belongs to the peer's mutex.
type Grants struct {
	peer    connection
	last    string   // the latest sender: most messages are of one that has sent before ...
	lastIs  identity // ... and its identity
	of      map[string]grant
	bytes   int
	sweepAt int // how many there may be before actors that are gone are looked for
	refused int // names, since that was done
}

// connection describes the latest connection of a peer.
type connection struct {
	known       bool // the peer was connected before
	incarnation uint64
	from        netip.Addr
	ended       time.Time // zero: not yet
}

// AnswerTime is how long grants outlive the peer's last connection.
const AnswerTime = time.Hour

// isOver reports whether the connection ended more than AnswerTime ago.
func (c *connection) isOver(now time.Time) bool {
	return c.known && !c.ended.IsZero() && now.Sub(c.ended) > AnswerTime
}

// Connected notes the incarnation that is now connected. If it differs from the one before, or
// AnswerTime is over, only the grants of senders with queued messages stay; waiting lists these.
func (g *Grants) Connected(incarnation uint64, from netip.Addr, now time.Time, waiting func(do func(sender string))) {
	if g.peer.known && g.peer.incarnation != incarnation || g.peer.isOver(now) {
		before := g.of
		*g = Grants{}
		waiting(func(sender string) {
			if to, ok := before[sender]; ok {
				g.setGrant(sender, to)
			}
		})
	}
	g.peer = connection{known: true, incarnation: incarnation, from: from}
}

// Disconnected notes that the peer's connection has ended.
func (g *Grants) Disconnected(now time.Time) { g.peer.ended = now }

// Accesses is a bit set of the operations that a peer may do.
type Accesses uint8

// grant is for one actor, and not for another one that gets its name later.
type grant struct {
	to     identity
	access Accesses
}

// identity identifies the process that had a name. It keeps no actor in memory that has stopped.
type identity struct {
	actor weak.Pointer[actor.ActorProcess]
	other actor.Process
}

func identityOf(p actor.Process) identity {
	if a, ok := p.(*actor.ActorProcess); ok {
		return identity{actor: weak.Make(a)}
	}
	return identity{other: p}
}

// isProcess reports whether p is that process. Of those that are no pointers one is as good as
// another.
func (i *identity) isProcess(p actor.Process) bool {
	if a, ok := p.(*actor.ActorProcess); ok {
		return i.actor.Value() == a
	}
	t := reflect.TypeOf(p)
	return reflect.TypeOf(i.other) == t && (t.Kind() != reflect.Pointer || i.other == p)
}

// GrantBytes is how many bytes the grants of one peer may take, each counted as its name and
// grantBytes.
const (
	GrantBytes = 32 << 20
	grantBytes = 128
)

// Sent notes that a local actor, which is this process, has sent the peer a message, and grants
// reach. alive reports whether an actor still is. False: there is no room for another one's grant.
func (g *Grants) Sent(id string, p actor.Process, reach Accesses, alive func(id string) bool) (ok bool) {
	if id == g.last && g.lastIs.isProcess(p) {
		return true
	}
	to, ok := g.of[id]
	if !ok && !g.hasRoom(id, alive) {
		return false
	}
	if !ok || !to.to.isProcess(p) {
		to = g.addGrant(id, p, reach)
	}
	g.last, g.lastIs = id, to.to
	return true
}

// hasRoom reports whether there may be a grant for another name. Grants of actors that are gone are
// looked for whenever there are twice as many as when that was done last, and while there is no
// room once for a number of refused names.
func (g *Grants) hasRoom(id string, alive func(id string) bool) bool {
	fits := func() bool { return g.bytes+grantBytes+len(id) <= GrantBytes }
	if g.refused++; fits() {
		g.refused = 0
		if len(g.of) < g.sweepAt {
			return true
		}
	} else if g.refused <= len(g.of)/4 && g.refused > 1 {
		return false
	}
	for id := range g.of {
		if !alive(id) {
			delete(g.of, id)
			g.bytes -= grantBytes + len(id)
		}
	}
	g.last, g.refused, g.sweepAt = "", 1, 2*len(g.of)+1024
	return fits()
}

// Add grants access to an actor in addition to its grants. It returns false if there is no room.
func (g *Grants) Add(id string, p actor.Process, access Accesses, alive func(id string) bool) (ok bool) {
	if _, has := g.of[id]; !has && !g.hasRoom(id, alive) {
		return false
	}
	g.addGrant(id, p, access)
	return true
}

func (g *Grants) addGrant(id string, p actor.Process, access Accesses) grant {
	if was, ok := g.of[id]; ok && was.to.isProcess(p) {
		access |= was.access
	}
	now := grant{identityOf(p), access}
	g.setGrant(id, now)
	return now
}

func (g *Grants) setGrant(id string, to grant) {
	if g.of == nil {
		g.of = make(map[string]grant)
	}
	if _, ok := g.of[id]; !ok {
		g.bytes += grantBytes + len(id)
	}
	g.of[id] = to
}

// Has reports whether something is granted to the process of a name.
func (g *Grants) Has(id string, p actor.Process, access Accesses) bool {
	now := g.of[id]
	return now.access&access != 0 && now.to.isProcess(p)
}
