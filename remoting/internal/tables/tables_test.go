package tables

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// request returns a request of a future's, with a token.
func request(token uint32) Request {
	return Request{Future: actor.NewPID("", "future$1"), Process: actor.NewActorProcess(nil), Packet: uint64(token), Token: token}
}

// The token of a request allows one answer; its name alone allows none. A slot that is used again
// has another token.
func TestWhoHasTheTokenAnswersOnce(t *testing.T) {
	f := MakeFutures(7)
	name := f.Next()
	f.Add(request(1))
	if link, ok := LinkOf(name); link != 7 || !ok || !f.Has(name) || !IsFuture(name) {
		t.Errorf("%s is of link %d", name, link)
	}
	if _, ok := f.Take(name, 2); ok {
		t.Error("another token has taken it")
	}
	if _, ok := f.Find(name, 1); !ok {
		t.Error("it is not there")
	}
	if _, ok := f.Take(name, 1); !ok || f.Waiting() != 0 {
		t.Error("its token has not taken it")
	}
	if again := f.Next(); again != name {
		t.Errorf("the next slot is %s: names come again", again)
	}
	f.Add(request(2))
	if _, ok := f.Take(name, 1); ok {
		t.Error("it was answered twice")
	}
	for _, bad := range []string{"", "future$1", "future$#7.-1", "future$#7.99", "future$#8.0", "future$#7.x"} {
		if _, ok := f.Find(bad, 0); ok {
			t.Errorf("%q is a slot", bad)
		}
	}
}

// The requests that are taken together come in the order in which they were put, whatever slots
// they have.
func TestTakeThoseKeepsTheOrder(t *testing.T) {
	f := MakeFutures(1)
	for i := range uint32(4) {
		f.Next()
		f.Add(request(i))
	}
	f.TakeThose(func(r *Request) bool { return r.Packet < 2 })
	for i := range uint32(2) {
		f.Next()
		f.Add(request(10 + i))
	}
	var order []uint32
	for _, r := range f.TakeThose(func(*Request) bool { return true }) {
		order = append(order, r.Token)
	}
	if want := []uint32{2, 3, 10, 11}; !slices.Equal(order, want) {
		t.Errorf("%v instead of %v", order, want)
	}
}

// The watches of a peer's are bounded in number and in bytes. Those that end make room.
func TestWatchesOfAPeerAreBounded(t *testing.T) {
	var w Watches
	i, pad := 0, strings.Repeat("x", 1<<10)
	key := func(i int) Pair { return Pair{Watcher: fmt.Sprint(i), Watched: pad} }
	for w.AddTheirs(key(i)) {
		i++
	}
	if _, theirs := w.Len(); theirs != i || i*len(pad) > watchesBytes || i < watchesBytes/(len(pad)+10) {
		t.Errorf("%d watches of %d bytes each", theirs, len(pad))
	}
	if !w.RemoveTheirs(key(0)) || w.RemoveTheirs(key(0)) || w.HasTheirs(key(0)) || !w.AddTheirs(key(0)) {
		t.Error("one that has ended makes no room, once")
	}
	if _, theirs := w.End(); len(theirs) != i || theirs[0] != key(1) {
		t.Errorf("%d have ended, the first is of %s", len(theirs), theirs[0].Watcher)
	}
	for i = 0; w.AddTheirs(Pair{Watcher: fmt.Sprint(i)}); i++ {
	}
	if i != watchesMost {
		t.Errorf("%d watches", i)
	}
}

// Of this node's watches, those of actors that are gone are found in time, oldest first.
func TestSweepFindsTheDead(t *testing.T) {
	var w Watches
	alive := func(id string) bool { return id == "alive" }
	w.Add(Pair{Watcher: "alive", Watched: "x"}, Watch{Watcher: actor.NewPID("", "alive")})
	w.Sweep(alive)
	for i := range 1000 {
		id := fmt.Sprint("dead", i)
		w.Add(Pair{Watcher: id, Watched: "x"}, Watch{Watcher: actor.NewPID("", id)})
	}
	dead := w.Sweep(alive)
	if ours, _ := w.Len(); ours != 1 || len(dead) != 1000 || dead[0].Watcher.Id != "dead0" {
		t.Errorf("%d are left, %d are dead", ours, len(dead))
	}
	if _, was := w.Remove(Pair{Watcher: "alive", Watched: "x"}); !was {
		t.Error("the one that is alive is not left")
	}
}

// A grant for an actor does not hold for another one that gets its name.
func TestGrantsAreOfOneProcess(t *testing.T) {
	var g Grants
	was, is := actor.NewActorProcess(nil), actor.NewActorProcess(nil)
	alive := func(string) bool { return true }
	g.Sent("a", was, 1, alive)
	g.Add("a", was, 2, alive)
	if !g.Has("a", was, 1) || !g.Has("a", was, 2) || g.Has("a", was, 4) {
		t.Error("what was granted last is not all that was")
	}
	if g.Has("a", is, 1) {
		t.Error("another one has the grant")
	}
	g.Sent("a", is, 1, alive)
	if !g.Has("a", is, 1) || g.Has("a", is, 2) || g.Has("a", was, 1) {
		t.Error("the new one has not just its own")
	}
}

// Grants are bounded in bytes. None is forgotten while its actor lives: the newest finds no room.
// Actors that have stopped make room.
func TestGrantsAreBounded(t *testing.T) {
	var g Grants
	p := actor.NewActorProcess(nil)
	lives, looks := true, 0
	alive := func(string) bool { looks++; return lives }
	n := 0
	for g.Sent(fmt.Sprint(n), p, 1, alive) {
		n++
	}
	if g.bytes > GrantBytes || n < 200_000 {
		t.Errorf("%d grants, %d bytes", n, g.bytes)
	}
	for i := range n {
		if !g.Has(fmt.Sprint(i), p, 1) {
			t.Fatalf("grant %d of %d is forgotten", i, n)
		}
	}
	if g.Sent("new", p, 1, alive) || g.Has("new", p, 1) || !g.Sent("0", p, 1, alive) {
		t.Error("not the newest is refused")
	}
	looks = 0
	for range 100 {
		g.Sent("new", p, 1, alive)
	}
	if looks > n {
		t.Errorf("for 100 that were refused %d actors were looked at", looks)
	}
	lives = false
	for range n {
		if g.Sent("new", p, 1, alive) {
			return
		}
	}
	t.Error("those that have stopped make no room")
}

// One address names at most as many nodes as are left for all others, and after a while it may name
// others.
func TestNamedNodesAreShared(t *testing.T) {
	var n Named
	now, greedy, other := time.Unix(1, 0), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.9.0.1")
	named := 0
	for named < 100 && n.May(fmt.Sprint("node", named), greedy, 100, time.Second, now) {
		named++
	}
	if named == 0 || named > 50 {
		t.Errorf("one address has named %d of 100", named)
	}
	if !n.May("node0", greedy, 100, time.Second, now) {
		t.Error("what was named may not be named again")
	}
	if !n.May("mine", other, 100, time.Second, now) {
		t.Error("nothing is left for another one")
	}
	if !n.May("later", greedy, 100, time.Second, now.Add(time.Second)) {
		t.Error("they are not forgotten")
	}
}

// A peer that does not prove who it is, is new once, and they do not become more than may be.
func TestUnprovedAreBounded(t *testing.T) {
	var u Unproved
	for id := range uint64(100) {
		if !u.Note(id, 10) || u.Note(id, 10) {
			t.Fatalf("peer %d is not new once", id)
		}
		if len(u) > 10 {
			t.Fatalf("%d are remembered", len(u))
		}
	}
	u.Forget(99)
	if !u.Note(99, 10) {
		t.Error("it was not forgotten")
	}
}

// Spawns that end together come in the order of the calls, without those that were answered.
func TestSpawnsEndInTheirOrder(t *testing.T) {
	var s Spawns
	var list []chan<- Spawned
	for range 5 {
		c := make(chan Spawned, 1)
		s.Add(c)
		list = append(list, c)
	}
	if c, ok := s.Take(2); !ok || c != list[1] {
		t.Error("the second is not the second")
	}
	if _, ok := s.Take(2); ok {
		t.Error("it is there twice")
	}
	if got := s.End(); !slices.Equal(got, slices.Delete(list, 1, 2)) {
		t.Error("another order")
	}
	if len(s.End()) > 0 {
		t.Error("some are left")
	}
}
