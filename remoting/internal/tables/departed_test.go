package tables

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

var (
	here    = netip.MustParseAddr("10.0.0.1")
	nothing = func(func(string)) {}
	always  = func(string) bool { return true }
)

// granted makes the grants of a node that was connected, and has gone.
func granted(incarnation uint64, from netip.Addr, ended time.Time, p actor.Process, senders ...string) (g Grants) {
	g.Connected(incarnation, from, ended, nothing)
	for _, id := range senders {
		g.Sent(id, p, 1, always)
	}
	g.Disconnected(ended)
	return g
}

// Grants outlive connections of the same incarnation, for AnswerTime. Another incarnation inherits
// only those of senders whose messages are still queued for it.
func TestGrantsOutliveConnections(t *testing.T) {
	start := time.Unix(1, 0)
	for _, c := range []struct {
		what        string
		incarnation uint64
		after       time.Duration
		has         []string
	}{
		{"the same", 1, AnswerTime, []string{"sent", "waits"}},
		{"the same, and too late", 1, AnswerTime + 1, []string{"waits"}},
		{"another one", 2, 0, []string{"waits"}},
	} {
		p := actor.NewActorProcess(nil)
		g := granted(1, here, start, p, "sent", "waits")
		g.Connected(c.incarnation, here, start.Add(c.after), func(do func(string)) { do("waits"); do("spawned") })
		for _, id := range []string{"sent", "waits", "spawned"} {
			if has := slices.Contains(c.has, id); g.Has(id, p, 1) != has {
				t.Errorf("%s: %s: %v", c.what, id, !has)
			}
		}
		if n := len(c.has); len(g.of) != n || g.bytes != n*grantBytes+len(fmt.Sprint(c.has))-1-n {
			t.Errorf("%s: %d grants, %d bytes", c.what, len(g.of), g.bytes)
		}
		if g.Sent("sent", p, 1, always); !g.Has("sent", p, 1) {
			t.Errorf("%s: what is sent again is not granted again", c.what)
		}
	}
}

// Grants from before the first connection hold for any incarnation.
func TestGrantsBeforeTheFirstConnection(t *testing.T) {
	var g Grants
	p := actor.NewActorProcess(nil)
	g.Sent("a", p, 1, always)
	g.Connected(1, here, time.Unix(1, 0), nothing)
	if !g.Has("a", p, 1) {
		t.Error("it is not granted")
	}
}

// The grants of departed nodes stay within their bound, whichever nodes come and go, and a node
// finds its grants again until they are too old.
func TestDepartedAreBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	p := actor.NewActorProcess(nil)
	var d Departed
	now := time.Unix(1, 0)
	kept := make(map[uint64]time.Time)
	refused := 0
	for i := range uint64(3000) {
		now = now.Add(time.Duration(rnd.IntN(5)) * time.Second)
		node := rnd.Uint64N(400)
		at, was := kept[node]
		if g := d.Take(node); was && now.Sub(at) <= AnswerTime && len(g.of) == 0 || !was && len(g.of) > 0 {
			t.Fatalf("node %d: kept: %v, %v ago, and it has %d grants", node, was, now.Sub(at), len(g.of))
		}
		delete(kept, node)
		g := granted(i, netip.AddrFrom4([4]byte{10, 0, 0, byte(rnd.IntN(3))}), now, p, "x")
		g.bytes = rnd.IntN(GrantBytes / 8) // as of so many
		if d.Keep(node, g, now) {
			kept[node] = now
		} else {
			refused++
		}
		if n := d.bytes.Total(); n > DepartedBytes {
			t.Fatalf("%d bytes", n)
		}
	}
	if refused == 0 || len(kept) == 0 {
		t.Errorf("%d kept, %d refused", len(kept), refused)
	}
	for node := range kept {
		d.Take(node)
	}
	now = now.Add(AnswerTime + 1)
	d.Keep(1000, granted(1, here, now, p, "x"), now)
	if d.Take(1000); d.bytes.Total() != 0 || d.nodes.len() != 0 {
		t.Errorf("%d bytes of %d nodes are left", d.bytes.Total(), d.nodes.len())
	}
}

// The nodes of one address cannot use up the room, however many there are.
func TestDepartedAreShared(t *testing.T) {
	p := actor.NewActorProcess(nil)
	var d Departed
	now := time.Unix(1, 0)
	for node := range uint64(1000) {
		g := granted(1, here, now, p, "x")
		g.bytes = 1 << 20
		d.Keep(node, g, now)
	}
	if !d.Keep(5000, granted(1, netip.MustParseAddr("10.0.0.2"), now, p, "x"), now) {
		t.Error("nothing is left for another address")
	}
	if n := d.bytes.Total(); n < DepartedBytes/3 || n > DepartedBytes*2/3 {
		t.Errorf("one address has %d bytes", n)
	}
}
