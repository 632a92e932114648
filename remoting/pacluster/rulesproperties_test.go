package pacluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// After an outage the provider removes members one by one, and lists them again when they have
// registered. While the network is whole no majority is expelled, however long that takes, and no
// member at all if each registers within holdFor. Those that stay know each other.
func TestRulesOutageProperty(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			var ids []string
			for i := range 2 + rnd.IntN(6) {
				ids = append(ids, fmt.Sprintf("%c1", 'a'+i))
			}
			w := newWorld(t, ids...)
			w.pass(5 * time.Second)
			late := time.Minute
			if seed%2 == 1 {
				late = 2 * holdFor
			}
			type event struct {
				at     time.Duration
				id     string
				listed bool
			}
			var events []event
			for _, id := range ids {
				removed := time.Duration(rnd.IntN(30)) * 100 * time.Millisecond
				events = append(events, event{removed, id, false}, event{removed + time.Duration(rnd.Int64N(int64(late))), id, true})
			}
			slices.SortFunc(events, func(a, b event) int { return int(a.at - b.at) })
			begun := w.now
			for _, ev := range events {
				w.pass(max(0, begun+ev.at-w.now))
				w.listed[ev.id] = ev.listed && w.alive(ev.id)
			}
			w.pass(30*time.Second + holdFor*time.Duration(seed%2))
			left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !w.alive(id) })
			if 2*len(left) < len(ids) || seed%2 == 0 && len(left) < len(ids) {
				t.Errorf("of %v only %v are left", ids, left)
			}
			w.want(left...)
		})
	}
}

// However the network was cut, when it is whole again the members that are left know each other,
// and there is at least one.
func TestRulesPartitionProperty(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			var ids []string
			for i := range 2 + rnd.IntN(6) {
				ids = append(ids, fmt.Sprintf("%c1", 'a'+i))
			}
			w := newWorld(t, ids...)
			w.each = true
			w.pass(10 * time.Second)
			cut := make(map[string]bool)
			for range rnd.IntN(2 * len(ids)) {
				a, b := ids[rnd.IntN(len(ids))], ids[rnd.IntN(len(ids))]
				cut[a+b], cut[b+a] = true, true
			}
			w.cut = func(a, b string) bool { return a != b && cut[a+b] }
			w.pass(time.Duration(rnd.IntN(300)) * 100 * time.Millisecond)
			w.cut = func(string, string) bool { return false }
			w.pass(time.Minute)
			left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !w.alive(id) })
			if len(left) == 0 {
				t.Fatalf("of %v none is left, with %v cut", ids, sortedKeys(cut))
			}
			w.want(left...)
		})
	}
}
