package pacluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// testTTL is the ttl of simulated members that observe their contact.
const testTTL = 3 * time.Second

// The outcomes of what happens to providers, members and networks.
func TestRules(t *testing.T) {
	abc := []string{"a1", "b1", "c1"}
	split := func(sides ...string) func(a, b string) bool {
		return func(a, b string) bool {
			return !slices.ContainsFunc(sides, func(s string) bool { return strings.Contains(s, a[:1]) && strings.Contains(s, b[:1]) })
		}
	}
	whole := func(string, string) bool { return false }
	for name, tt := range map[string]struct {
		ids  []string
		each bool
		run  func(w *world)
		want []string
	}{
		"a member is killed": {ids: abc, run: func(w *world) {
			w.nodes["b1"].left = true
			delete(w.listed, "b1")
			w.pass(time.Second)
		}, want: []string{"a1", "c1"}},
		"a member leaves and is not listed for a moment": {ids: abc, run: func(w *world) {
			delete(w.listed, "b1")
			w.pass(3 * time.Second)
			w.listed["b1"] = true
			w.pass(time.Minute)
		}, want: abc},
		"a member is not listed for good": {ids: abc, run: func(w *world) {
			delete(w.listed, "b1")
			w.pass(2 * time.Minute)
			w.want(abc...)
			w.pass(time.Minute)
		}, want: []string{"a1", "c1"}},
		"a member is not listed, and another one joins": {ids: abc, run: func(w *world) {
			delete(w.listed, "b1")
			w.pass(time.Minute)
			w.add("d1")
			w.pass(20 * time.Second)
		}, want: []string{"a1", "c1", "d1"}},
		"all are removed one after the other and return late": {ids: abc, run: func(w *world) {
			for _, id := range abc {
				delete(w.listed, id)
				w.pass(500 * time.Millisecond)
			}
			w.pass(2 * time.Minute)
			for _, id := range abc {
				w.listed[id] = true
				w.pass(3 * time.Second)
			}
			w.pass(time.Minute)
		}, want: abc},
		"a member is frozen and given up": {ids: abc, run: func(w *world) {
			w.nodes["b1"].frozen = true
			delete(w.listed, "b1")
			w.pass(30 * time.Second)
			w.nodes["b1"].frozen = false
			w.pass(10 * time.Second)
		}, want: []string{"a1", "c1"}},
		"a member restarts at its address and is frozen then": {ids: abc, run: func(w *world) {
			w.nodes["c1"].left = true
			w.add("c2") // joined before c1 has left
			w.pass(3 * time.Second)
			delete(w.listed, "c1")
			w.pass(10 * time.Second)
			w.nodes["c2"].frozen = true
			delete(w.listed, "c2")
			w.pass(30 * time.Second)
			w.nodes["c2"].frozen = false
			w.pass(time.Minute)
		}, want: []string{"a1", "b1"}},
		"another member is frozen after a restart": {ids: abc, run: func(w *world) {
			w.nodes["c1"].left = true
			w.add("c2")
			w.pass(3 * time.Second)
			delete(w.listed, "c1")
			w.pass(10 * time.Second)
			w.nodes["b1"].frozen = true // its view has c2
			delete(w.listed, "b1")
			w.pass(30 * time.Second)
			w.nodes["b1"].frozen = false
			w.pass(time.Minute)
		}, want: []string{"a1", "c2"}},
		"two parts meet again": {ids: abc, each: true, run: func(w *world) {
			w.cut = split("a", "bc")
			w.pass(20 * time.Second)
			w.cut = whole
			w.pass(10 * time.Second)
		}, want: []string{"b1", "c1"}},
		"two equal parts meet again": {ids: []string{"a1", "b1", "c1", "d1"}, each: true, run: func(w *world) {
			w.cut = split("ad", "bc")
			w.pass(20 * time.Second)
			w.cut = whole
			w.pass(10 * time.Second)
		}, want: []string{"a1", "d1"}},
		"three parts meet again": {ids: []string{"a1", "b1", "c1", "d1", "e1"}, each: true, run: func(w *world) {
			w.cut = split("ad", "b", "ce")
			w.pass(20 * time.Second)
			w.cut = whole
			w.pass(20 * time.Second)
		}, want: []string{"a1", "d1"}},
		"two of three are cut from each other": {ids: abc, each: true, run: func(w *world) {
			w.cut = split("ac", "bc")
			w.pass(20 * time.Second)
		}, want: []string{"a1", "c1"}},
		"one of five is cut from two": {ids: []string{"a1", "b1", "c1", "d1", "e1"}, each: true, run: func(w *world) {
			w.cut = split("ade", "bcde")
			w.pass(20 * time.Second)
		}, want: []string{"b1", "c1", "d1", "e1"}},
	} {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " reverse=", reverse), func(t *testing.T) {
				w := newWorld(t, tt.ids...)
				w.each, w.reverse = tt.each, reverse
				w.pass(10 * time.Second)
				w.want(tt.ids...)
				tt.run(w)
				w.want(tt.want...)
			})
		}
	}
}

// How a member judges another one's claim to have removed it.
func TestRulesClaims(t *testing.T) {
	told := func(by string, size int, settled bool) claim {
		return claim{by: by, name: by + ":1", side: side{size: size, leader: by, settled: settled}, direct: true, excluded: true}
	}
	gossip := func(by string, heard time.Duration, list ...string) claim {
		topology := &cluster.ClusterTopology{}
		for _, id := range list {
			topology.Members = append(topology.Members, member(id))
		}
		return claimOf(by, "c1", topology, heard)
	}
	const second = time.Second
	for name, tt := range map[string]struct {
		claim   func(now time.Duration) *claim
		answers bool          // b1 still answers
		leaves  time.Duration // 0: it stays
		knows   string        // in the end
	}{
		"settled and of all others": {
			claim:  func(time.Duration) *claim { return new(told("b1", 3, true)) },
			leaves: 2 * second, knows: "a1 b1 c1 d1",
		},
		"unsettled at first": {
			claim:  func(now time.Duration) *claim { return new(told("b1", 3, now > 5*second)) },
			leaves: 5 * second, knows: "a1 b1 c1 d1",
		},
		"of a member that has removed all": {
			claim: func(time.Duration) *claim { return new(told("b1", 1, true)) }, knows: "a1 c1 d1",
		},
		"by gossip of a member that never knew this one": {
			claim: func(now time.Duration) *claim { return new(gossip("b1", now, "a1", "b1", "d1")) }, knows: "a1 b1 c1 d1",
		},
		"by gossip of a member that knew this one": {
			claim: func(now time.Duration) *claim {
				if now < second {
					return new(gossip("b1", now, "a1", "b1", "c1", "d1"))
				}
				return new(gossip("b1", now, "a1", "b1", "d1"))
			},
			leaves: 11 * second, knows: "a1 b1 c1 d1",
		},
		"by gossip that ends, of a member that may have ended": {
			claim: func(now time.Duration) *claim {
				switch {
				case now < second:
					return new(gossip("b1", now, "a1", "b1", "c1", "d1"))
				case now < 8*second:
					return new(gossip("b1", now, "a1", "b1", "d1"))
				}
				return nil
			},
			knows: "a1 b1 c1 d1",
		},
		"by gossip, which is forged, of a member that answers": {
			claim: func(now time.Duration) *claim {
				if now < second {
					return new(gossip("b1", now, "a1", "b1", "c1", "d1"))
				}
				return new(gossip("b1", now, "a1", "b1", "d1", "e1", "f1", "g1"))
			},
			answers: true, knows: "a1 b1 c1 d1",
		},
		"by gossip of the time before a goodbye": {
			claim: func(now time.Duration) *claim {
				if now == 0 {
					return new(told("b1", 3, true))
				}
				return new(gossip("b1", now, "a1", "b1", "c1", "d1"))
			},
			leaves: 2 * second, knows: "a1 b1 c1 d1",
		},
		"of a member that is not known": {
			claim: func(time.Duration) *claim { return new(told("x1", 3, true)) }, knows: "a1 b1 c1 d1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRules("c1", "c:1", 0)
			r.providerListed(0, cluster.Members{member("a1"), member("b1"), member("c1"), member("d1")})
			const since = 10 * time.Second
			r.decideActions(since)
			var left, now time.Duration
			for ; now < 30*second && left == 0; now += 100 * time.Millisecond {
				if c := tt.claim(now); c != nil {
					if !c.direct {
						c.heard += since
					}
					r.memberClaimed(since+now, *c)
				}
				d := r.decideActions(since + now)
				for _, m := range d.ask {
					r.memberAnswered(since+now, m.Id, tt.answers || plainID(m.Id) != "b1")
				}
				if d.leave != nil {
					left = now
				}
			}
			if got := left.Round(second); got != tt.leaves {
				t.Errorf("it leaves after %v, want %v", left, tt.leaves)
			}
			if got := strings.Join(sortedKeys(r.members), " "); got != tt.knows {
				t.Errorf("it knows %s, want %s", got, tt.knows)
			}
		})
	}
}

// A member that was removed claims the same of this one. The claim counts if both lists have
// settled, if it is later than the removal, and if the other has not left or is wrong by the
// provider's list.
func TestRulesDeparted(t *testing.T) {
	const second = time.Second
	list := func(ids ...string) (all cluster.Members) {
		for _, id := range ids {
			all = append(all, member(id))
		}
		return all
	}
	larger := &cluster.ClusterTopology{Members: list("a1", "b1", "d1")}
	for name, tt := range map[string]struct {
		ttl    time.Duration
		gossip bool
		heard  time.Duration // after the removal
		at     time.Duration // when it is judged
		before func(r *rules)
		leaves bool
	}{
		"both have settled":         {at: 3 * second, leaves: true},
		"not settled yet":           {at: second},
		"by gossip":                 {gossip: true, heard: 3 * second, at: 3 * second, leaves: true},
		"by gossip that is too old": {gossip: true, heard: second, at: 2 * second},
		"it has left":               {at: 3 * second, before: func(r *rules) { r.memberLeft(10*second, "b1") }},
		"it has not left": {at: 31 * second, leaves: true, before: func(r *rules) {
			for now := 10 * second; now < 41*second; now += second { // made up, again and again
				r.memberLeft(now, "b1")
			}
		}},
		"the provider knows better": {at: 3 * second, ttl: 30 * second, before: func(r *rules) { r.providerContacted(12 * second) }},
		"without contact":           {at: 3 * second, ttl: 3 * second, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRules("c1", "c:1", tt.ttl)
			r.providerListed(0, list("b1", "c1"))
			r.decideActions(0)
			r.providerListed(10*second, list("c1"))
			r.memberAnswered(10*second, "b1", false)
			if d := r.decideActions(10 * second); len(d.members) != 1 {
				t.Fatalf("the members are %v", d.members)
			}
			if tt.before != nil {
				tt.before(r)
			}
			c := claim{by: "b1", name: "b:1", side: side{size: 3, leader: "a:1", settled: true}, direct: true, excluded: true}
			if tt.gossip {
				c = claimOf("b1", "c1", larger, 10*second+tt.heard)
			}
			r.memberClaimed(10*second+tt.at, c)
			if tt.gossip { // its list settles
				tt.at += 2*second - 100*time.Millisecond
				r.memberClaimed(10*second+tt.at, c)
				tt.at += 100 * time.Millisecond
				c.heard += 2 * second
				r.memberClaimed(10*second+tt.at, c)
			}
			if d := r.decideActions(10*second + tt.at); (d.leave != nil) != tt.leaves {
				t.Errorf("it leaves because of %+v", d.leave)
			}
		})
	}
}

// A member that has left by gossip, which any other one may have made up, is removed only if it
// does not answer from then on.
func TestRulesLeft(t *testing.T) {
	for answers, want := range map[bool]int{true: 3, false: 2} {
		r := newRules("c1", "c:1", 0)
		r.providerListed(0, cluster.Members{member("a1"), member("b1"), member("c1")})
		r.memberAnswered(0, "b1", !answers) // from before
		for now := time.Duration(1); now < time.Minute; now += time.Second {
			r.memberLeft(now, "b1")
			for _, m := range r.decideActions(now).ask {
				r.memberAnswered(now, m.Id, answers)
			}
		}
		if d := r.decideActions(time.Minute); len(d.members) != want {
			t.Errorf("it answers: %t, and the members are %v", answers, d.members)
		}
	}
}

// A removed member that the provider still lists is no new one, however many others have been
// removed after it.
func TestRulesDepartedAreRemembered(t *testing.T) {
	r := newRules("c1", "c:1", 0)
	listed := cluster.Members{member("b1"), member("c1")}
	r.providerListed(0, listed)
	r.memberBlocked(time.Second, "b1")
	for i := range 3 * mostDeparted {
		now := time.Duration(2+i) * time.Second
		other := member(fmt.Sprintf("d%d", i))
		r.providerListed(now, append(listed, other))
		r.memberBlocked(now, other.Id)
		r.providerListed(now, listed)
	}
	if d := r.decideActions(time.Hour); len(d.members) != 1 || len(r.departed) > mostDeparted {
		t.Errorf("the members are %v, %d have departed", d.members, len(r.departed))
	}
}

// A process that is listed at a member's address takes its place, even if the member seems to
// answer.
func TestRulesReplaced(t *testing.T) {
	r := newRules("a1", "a:1", 0)
	r.providerListed(0, cluster.Members{member("a1"), member("b1")})
	r.providerListed(1, cluster.Members{member("a1"), member("b2")})
	r.memberAnswered(2, "b1", true)
	if d := r.decideActions(2); len(d.members) != 2 || d.members[1].Id != member("b2").Id {
		t.Errorf("the members are %v", d.members)
	}
}

// A member that the provider's server and some members cannot reach stops its grains within the
// ttl, and has some again only if it is still a member. An outage of the server alone stops none.
func TestRulesContact(t *testing.T) {
	abc := []string{"a1", "b1", "c1"}
	begin := func(t *testing.T) *world {
		w := newWorld(t)
		w.contact = true
		for _, id := range abc {
			w.add(id)
		}
		w.pass(10 * time.Second)
		w.want(abc...)
		return w
	}
	suspended := func(w *world) (ids []string) {
		for _, id := range sortedKeys(w.nodes) {
			if w.alive(id) && w.nodes[id].latest.suspended {
				ids = append(ids, id)
			}
		}
		return ids
	}
	t.Run("outage", func(t *testing.T) {
		w := begin(t)
		w.blind = func(string) bool { return true }
		for range 1000 {
			w.pass(100 * time.Millisecond)
			if ids := suspended(w); ids != nil {
				t.Fatalf("%v are suspended after %v although all answer", ids, w.now)
			}
		}
		w.want(abc...)
	})
	t.Run("one member is out of contact for good", func(t *testing.T) {
		w := begin(t)
		w.add("d1")
		w.pass(10 * time.Second)
		w.blind = func(id string) bool { return id == "d1" } // so it asks all others
		w.pass(testTTL)
		delete(w.listed, "d1")
		w.pass(holdFor + 10*time.Second)
		w.want(abc...)
	})
	t.Run("cut off and removed", func(t *testing.T) {
		w := begin(t)
		w.cut = func(a, b string) bool { return a == "a1" || b == "a1" }
		w.blind = func(id string) bool { return id == "a1" }
		w.pass(testTTL / 2)
		if ids := suspended(w); !slices.Equal(ids, []string{"a1"}) {
			t.Errorf("after half the ttl %v are suspended", ids)
		}
		delete(w.listed, "a1")
		w.pass(time.Minute)
		w.cut, w.blind = func(string, string) bool { return false }, func(string) bool { return false }
		for w.alive("a1") {
			if len(suspended(w)) == 0 {
				t.Fatal("it has grains although it was removed")
			}
			w.pass(100 * time.Millisecond)
		}
		w.pass(time.Second)
		w.want("b1", "c1")
	})
	t.Run("the server is with the smaller part", func(t *testing.T) {
		w := begin(t)
		w.cut = func(a, b string) bool { return (a == "c1") != (b == "c1") }
		w.blind = func(id string) bool { return id != "c1" }
		w.pass(testTTL / 2)
		if ids := suspended(w); !slices.Equal(ids, []string{"a1", "b1"}) {
			t.Errorf("after half the ttl %v are suspended", ids)
		}
	})
	t.Run("back in time", func(t *testing.T) {
		w := begin(t)
		w.cut = func(a, b string) bool { return a == "a1" || b == "a1" }
		w.blind = func(id string) bool { return id == "a1" }
		w.pass(testTTL)
		w.cut, w.blind = func(string, string) bool { return false }, func(string) bool { return false }
		w.pass(2 * testTTL)
		if ids := suspended(w); ids != nil {
			t.Errorf("%v are still suspended", ids)
		}
		w.want(abc...)
	})
}
