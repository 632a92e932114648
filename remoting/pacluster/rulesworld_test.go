package pacluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// world simulates members with their provider, their network and the time. Ids are names with a
// generation: "a1", "a2"; addresses are "a:1".
type world struct {
	t       *testing.T
	now     time.Duration
	nodes   map[string]*simulated
	cut     func(a, b string) bool // the network between two nodes
	blind   func(id string) bool   // no contact to the provider's server
	listed  map[string]bool        // at the provider
	contact bool                   // nodes observe it
	// each node lists those that it reaches, as the automanaged provider does
	each    bool
	reverse bool // the order in which nodes take their steps
}

type simulated struct {
	r         *rules
	at        string
	frozen    bool
	left      bool // shut down, or without a process
	expelled  *claim
	blocked   map[string]bool
	latest    decision
	announced map[string]string // its list, as others know it by gossip: id to address
	suspended time.Duration     // since when
}

func newWorld(t *testing.T, ids ...string) *world {
	w := &world{
		t: t, nodes: make(map[string]*simulated), listed: make(map[string]bool),
		cut: func(string, string) bool { return false }, blind: func(string) bool { return false },
	}
	for _, id := range ids {
		w.listed[id] = true
	}
	for _, id := range ids {
		w.add(id)
	}
	return w
}

func member(id string) *cluster.Member {
	return &cluster.Member{Id: "test@" + id, Host: strings.TrimRight(id, "0123456789"), Port: 1}
}

func (w *world) add(id string) *simulated {
	ttl := time.Duration(0)
	if w.contact {
		ttl = testTTL
	}
	n := &simulated{r: newRules(id, member(id).Address(), ttl), at: member(id).Address(), blocked: make(map[string]bool)}
	w.nodes[id], w.listed[id] = n, true
	return n
}

func (w *world) alive(id string) bool {
	n := w.nodes[id]
	return n != nil && !n.left && n.expelled == nil
}

// reaches reports whether a node answers another one's question.
func (w *world) reaches(a, b string) bool {
	return w.alive(b) && !w.nodes[b].frozen && !w.cut(a, b) && !w.cut(b, a) && !w.nodes[b].blocked[a] && !w.nodes[a].blocked[b]
}

// pass simulates some time, in steps.
func (w *world) pass(d time.Duration) {
	const step = 100 * time.Millisecond
	for end := w.now + d; w.now < end; w.now += step {
		ids := sortedKeys(w.nodes)
		if w.reverse {
			slices.Reverse(ids)
		}
		for _, id := range ids {
			if n := w.nodes[id]; w.alive(id) && !n.frozen {
				w.step(id, n)
			}
		}
	}
}

func (w *world) step(id string, n *simulated) {
	// the provider's view for this node
	if !w.blind(id) {
		var list cluster.Members
		for _, other := range sortedKeys(w.nodes) {
			if w.each && (other == id || w.alive(other) && !w.nodes[other].frozen && !w.cut(id, other)) || !w.each && w.listed[other] {
				list = append(list, member(other))
			}
		}
		n.r.providerListed(w.now, list)
		n.r.providerContacted(w.now)
	}
	for other, o := range w.nodes {
		switch {
		case other == id || !w.alive(other) || o.frozen:
		case w.cut(id, other) || w.cut(other, id):
		case o.blocked[id]: // its goodbye
			n.r.memberClaimed(w.now, claim{by: other, name: o.at, side: o.r.ownSide(w.now), direct: true, excluded: true})
		}
		if w.hears(id, other) && o.announced != nil {
			t := &cluster.ClusterTopology{}
			for known := range o.announced {
				t.Members = append(t.Members, member(known))
			}
			n.r.memberClaimed(w.now, claimOf(other, id, t, w.now))
		}
	}
	n.latest = n.r.decideActions(w.now)
	for _, m := range n.latest.ask {
		other := plainID(m.Id)
		n.r.memberAnswered(w.now, m.Id, w.reaches(id, other))
		if w.reaches(id, other) {
			w.nodes[other].r.presenceAsked(w.now, n.at)
		}
	}
	n.announced = make(map[string]string)
	for _, m := range n.latest.members {
		n.announced[plainID(m.Id)] = m.Address()
	}
	for _, s := range n.r.departed {
		n.blocked[plainID(s.member.Id)] = true
	}
	if !n.latest.suspended {
		n.suspended = w.now
	}
	if n.latest.leave != nil {
		for other, o := range w.nodes {
			if w.hears(other, id) {
				o.r.memberLeft(w.now, id)
			}
		}
		n.expelled = n.latest.leave
		delete(w.listed, id)
	}
}

// hears reports whether a node gets another's gossip, directly or by a third one.
func (w *world) hears(id, from string) bool {
	if from == id || !w.alive(from) || w.nodes[from].frozen {
		return false
	}
	if w.reaches(id, from) {
		return true
	}
	for _, via := range sortedKeys(w.nodes) {
		if via != id && via != from && w.reaches(id, via) && w.reaches(via, from) {
			return true
		}
	}
	return false
}

// want checks the outcome: the members that are left, which all know each other.
func (w *world) want(ids ...string) {
	w.t.Helper()
	var left []string
	for _, id := range sortedKeys(w.nodes) {
		if w.alive(id) {
			left = append(left, id)
		}
	}
	if !slices.Equal(left, ids) {
		w.t.Errorf("after %v the members are %v, want %v", w.now, left, ids)
	}
	for _, id := range left {
		if known := sortedKeys(w.nodes[id].announced); !w.nodes[id].frozen && !slices.Equal(known, ids) {
			w.t.Errorf("after %v %s knows %v, want %v", w.now, id, known, ids)
		}
	}
}
