package pacluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/rdmactor/rdmactor/remoting"
)

const (
	// tickEvery is the interval at which the rules are looked at without news.
	tickEvery = 100 * time.Millisecond
	// askFor is how long a member may take to answer whether it is there.
	askFor = 2 * time.Second
	// gossipEvery is the interval at which the state of Proto.Actor's gossip is read.
	gossipEvery = time.Second
	// freshFor is the age up to which a heartbeat shows that a member lives. Each sends one every
	// 300 ms.
	freshFor = 5 * time.Second
)

// governor feeds the rules with observations, and carries out their decisions.
type governor struct {
	m       *Member
	started time.Time
	wake    chan struct{}

	mu    sync.Mutex
	rules *rules
	now   decision // the latest
}

func newGovernor(m *Member, ttl time.Duration) *governor {
	return &governor{m: m, started: time.Now(), wake: make(chan struct{}, 1), rules: newRules(m.sys.ID, "", ttl)}
}

// updateRules calls do with the rules.
func (g *governor) updateRules(do func(r *rules, now time.Duration)) {
	g.mu.Lock()
	do(g.rules, time.Since(g.started))
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// memberIDs returns the ids of the members.
func (g *governor) memberIDs() map[string]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids := make(map[string]bool, len(g.rules.members))
	for id := range g.rules.members {
		ids[id] = true
	}
	return ids
}

// currentMembers returns the current members. MemberList does not guard its own.
func (g *governor) currentMembers() cluster.Members {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now.members
}

// handleListed applies a list of the provider's.
func (g *governor) handleListed(list cluster.Members) {
	g.updateRules(func(r *rules, now time.Duration) { r.providerListed(now, list) })
}

// startFollowing applies the provider's first list of members, and follows it from now on.
func (g *governor) startFollowing(c *cluster.Cluster) {
	if !g.applyDecision(c) {
		return
	}
	go g.runRules(c)
	go g.readBlocked(c)
	if !g.m.client {
		go g.readGossip(c)
	}
}

func (g *governor) runRules(c *cluster.Cluster) {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-g.wake:
		case <-g.m.leaving:
			return
		}
		if !g.applyDecision(c) {
			return
		}
	}
}

// applyDecision carries out a decision of the rules. It reports whether this member stays one.
func (g *governor) applyDecision(c *cluster.Cluster) bool {
	g.mu.Lock()
	now := time.Since(g.started)
	d := g.rules.decideActions(now)
	was, before := g.now.suspended, g.now.missing
	g.now = d
	g.mu.Unlock()
	for _, m := range d.ask {
		go g.askMember(m, now)
	}
	switch {
	case d.leave != nil:
		g.m.expelBy(d.leave, len(d.members))
		return false
	case d.suspended != was:
		g.m.setSuspended(d.suspended, g.silentNames())
	}
	g.m.logMissing(d.missing, before)
	g.m.publishGuarded(func() { c.MemberList.UpdateClusterTopology(d.members) })
	return true
}

// presenceName returns the name of the actor that shows that a member is there. It ends when the
// member begins to leave.
func presenceName(id string) string { return "present-" + plainID(id) }

// receivePresence takes note of questions, which Proto.Actor itself answers.
func (g *governor) receivePresence(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Touch); ok {
		by := ctx.Sender().GetAddress()
		g.updateRules(func(r *rules, now time.Duration) { r.presenceAsked(now, by) })
	}
}

// askMember asks a member whether it is there.
func (g *governor) askMember(m *cluster.Member, asked time.Duration) {
	pid := actor.NewPID(m.Address(), presenceName(m.Id))
	_, err := remoting.Result(g.m.sys.Root.RequestFuture(pid, &actor.Touch{}, askFor))
	g.updateRules(func(r *rules, _ time.Duration) { r.memberAnswered(asked, m.Id, err == nil) })
}

// callEvery calls do at an interval, until the member is shut down.
func (g *governor) callEvery(interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-g.m.leaving:
			return
		}
	}
}

// readBlocked takes note of the members that Proto.Actor has blocked.
func (g *governor) readBlocked(c *cluster.Cluster) {
	g.callEvery(gossipEvery, func() {
		if g.m.suspended.Load() { // a grain may have started just before
			g.m.stopGrains()
		}
		for _, id := range c.Remote.BlockList().BlockedMembers().ToSlice() {
			g.updateRules(func(r *rules, now time.Duration) { r.memberBlocked(now, id) })
		}
	})
}

// readGossip takes note of the members that seem to have left, and of the others' lists. Each state
// is read from the gossip actor, which may be busy.
func (g *governor) readGossip(c *cluster.Cluster) {
	g.callEvery(gossipEvery, func() {
		left, err := c.Gossip.GetState(leftKey)
		if err != nil {
			return
		}
		lists, err := c.Gossip.GetState(cluster.TopologyKey)
		if err != nil {
			return
		}
		beats, err := c.Gossip.GetState(cluster.HeartbeatKey)
		if err != nil {
			return
		}
		delete(lists, g.m.sys.ID)
		delete(left, g.m.sys.ID)
		for id := range left {
			g.updateRules(func(r *rules, now time.Duration) { r.memberLeft(now, id) })
		}
		for id, kv := range lists {
			g.readList(id, kv, beats[id])
		}
	})
}

// readList takes note of a member's list, if its latest heartbeat is fresh.
func (g *governor) readList(id string, list, beat *cluster.GossipKeyValue) {
	var t cluster.ClusterTopology
	if beat == nil || list.Value.UnmarshalTo(&t) != nil || len(t.Members) == 0 {
		return
	}
	if age := time.Since(time.UnixMilli(beat.LocalTimestampUnixMilliseconds)); age <= freshFor {
		g.updateRules(func(r *rules, now time.Duration) { r.memberClaimed(now, claimOf(id, g.m.sys.ID, &t, now-age)) })
	}
}

// claimOf returns the claim in a member's list.
func claimOf(by, self string, t *cluster.ClusterTopology, heard time.Duration) claim {
	c := claim{by: by, excluded: true, heard: heard}
	var ids, names []string
	for _, m := range t.Members {
		id := plainID(m.Id)
		ids, names = append(ids, id), append(names, m.Address())
		c.excluded = c.excluded && id != self
		if id == by {
			c.name = m.Address()
		}
	}
	slices.Sort(ids)
	c.list, c.side = strings.Join(ids, ","), side{size: len(ids), leader: slices.Min(names)}
	return c
}

// watchContact asks the provider's server, until the member is shut down.
func (g *governor) watchContact(contact func(context.Context) error, ttl time.Duration) {
	g.callEvery(ttl/6, func() {
		asked := time.Since(g.started)
		ctx, cancel := context.WithTimeout(context.Background(), ttl/3)
		defer cancel()
		if callGuarded(func() error { return contact(ctx) }) == nil {
			g.updateRules(func(r *rules, _ time.Duration) { r.providerContacted(asked) })
		}
	})
}

// ownSide returns this member's side, for goodbyes.
func (g *governor) ownSide() side {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rules.ownSide(time.Since(g.started))
}

// lostAddresses returns where members were that have departed.
func (g *governor) lostAddresses() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rules.lostAddresses()
}

// silentNames returns the names of the members that have not answered lately.
func (g *governor) silentNames() (names []string) {
	for _, m := range g.m.Members() {
		if !m.Answers {
			names = append(names, m.Name)
		}
	}
	return names
}
