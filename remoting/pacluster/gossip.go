package pacluster

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"

	"github.com/rdmactor/rdmactor/internal/plain"
)

const (
	// gossipRoom is how many bytes the gossip from other members may have that is about members,
	// and as many for gossip about others: members that have departed, or that the provider has not
	// listed yet. It is at least two messages of the largest size. Each of n members may have an
	// n-th part of it even if the others use up all.
	gossipRoom = 8 << 20
	// gossipValueBytes is the size at which a value of gossip counts besides its content.
	gossipValueBytes = 1 << 10
	// gossipIDBytes is the size at which a name counts once for each member, besides its length:
	// Proto.Actor notes for each member which values it has sent.
	gossipIDBytes = 64
	// gossipReportEvery is the interval at which dropped gossip is logged.
	gossipReportEvery = time.Minute
)

// gossipLimit bounds the memory of Proto.Actor's gossip, which keeps every value that arrives, also
// of members that do not exist. It has a table of the values that were let through, and drops those
// that have no room. Proto.Actor never forgets a value, so neither does the table: only a newer
// value takes the place of an older one.
type gossipLimit struct {
	room    int
	members func() map[string]bool // their ids
	log     *slog.Logger

	mu       sync.Mutex
	about    map[string]*gossiped // keyed by id
	dropped  int                  // values, since reported
	reported time.Time
}

// gossiped contains the values about one member. Names that differ in their prefix only (plainID)
// are one member's.
type gossiped struct {
	bytes  int
	values map[string]map[string]gossipValue // keyed by name and key
}

type gossipValue struct {
	sequence int64
	bytes    int
}

func newGossipLimit(maxMessage int, members func() map[string]bool, log *slog.Logger) *gossipLimit {
	return &gossipLimit{room: max(gossipRoom, 2*maxMessage), members: members, log: log, about: make(map[string]*gossiped)}
}

// filterState deletes the values that Proto.Actor would ignore, because it has newer ones, and
// those that have no room.
func (g *gossipLimit) filterState(s *cluster.GossipState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := gossipRooms{limit: g}
	for name, m := range s.GetMembers() {
		m.ProtoReflect().SetUnknown(nil) // it is kept, too
		for key, v := range m.Values {
			if !g.acceptValue(&r, name, key, v) {
				delete(m.Values, key)
			}
		}
		if len(m.Values) == 0 {
			delete(s.Members, name)
		}
	}
}

// acceptValue reports whether a value is let through.
func (g *gossipLimit) acceptValue(r *gossipRooms, name, key string, v *cluster.GossipKeyValue) bool {
	id := plainID(name)
	of := g.about[id]
	if of == nil {
		of = &gossiped{values: make(map[string]map[string]gossipValue)}
	}
	before, ok := of.values[name][key]
	if ok && v.GetSequenceNumber() <= before.sequence {
		return false
	}
	r.countUsed()
	bytes := gossipValueBytes + len(key) + proto.Size(v)
	more := bytes - before.bytes
	if of.values[name] == nil {
		more += len(r.members) * (gossipIDBytes + len(name))
	}
	if !r.takeBytes(id, of, more) {
		g.logDropped(name, key, bytes)
		return false
	}
	if of.values[name] == nil {
		of.values[name] = make(map[string]gossipValue)
	}
	of.values[name][key] = gossipValue{v.GetSequenceNumber(), bytes}
	of.bytes += more
	g.about[id] = of
	return true
}

// logDropped logs a value without room, unless one was logged lately.
func (g *gossipLimit) logDropped(name, key string, bytes int) {
	if g.dropped++; time.Since(g.reported) < gossipReportEvery {
		return
	}
	g.log.Warn("pacluster: gossip is dropped, because there is too much of it",
		"member", plain.Quote(name), "key", plain.Quote(key), "bytes", bytes, "limit", g.room, "unlogged", g.dropped-1)
	g.dropped, g.reported = 0, time.Now()
}

// gossipRooms counts the use of the bounds while one state is filtered.
type gossipRooms struct {
	limit   *gossipLimit
	members map[string]bool // nil: not yet counted
	used    map[bool]int    // of members, and of others
}

func (r *gossipRooms) countUsed() {
	if r.members != nil {
		return
	}
	r.members, r.used = r.limit.members(), make(map[bool]int)
	for id, of := range r.limit.about {
		r.used[r.members[id]] += of.bytes
	}
}

// takeBytes reserves so many bytes for gossip about a member, or returns false.
func (r *gossipRooms) takeBytes(id string, of *gossiped, more int) bool {
	is := r.members[id]
	own := is && of.bytes+more <= r.limit.room/len(r.members)
	if more > 0 && !own && r.used[is]+more > r.limit.room {
		return false
	}
	r.used[is] += more
	return true
}

var errBlocks = errors.New("it blocks members, which no member does by gossip")

// checkGossip refuses a member without values, at which Proto.Actor would panic. Any member may
// make up another one's state, and Proto.Actor blocks members by two parts of it without asking
// them. So checkGossip refuses a list of blocked members, and deletes GracefullyLeftKey. No member
// of this version sends either: see leftKey. The rest is filtered.
func (s serialized) checkGossip(state *cluster.GossipState) error {
	for _, m := range state.GetMembers() {
		if m.Values == nil {
			return errMissing
		}
		delete(m.Values, cluster.GracefullyLeftKey)
		var t cluster.ClusterTopology
		if m.Values[cluster.TopologyKey].GetValue().UnmarshalTo(&t) == nil && len(t.Blocked) > 0 {
			return errBlocks
		}
	}
	s.gossip.filterState(state)
	return nil
}
