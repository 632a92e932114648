package pacluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/anypb"
)

// A member gossips about many members that it has made up. The others' memory stays bounded, and
// they still hear one another's gossip.
func TestHostileGossip(t *testing.T) {
	m := startAll(t, roles(t, 3)...)
	victim, hostile, other := m[0], m[1], m[2]
	before := victim.heap()
	for _, flood := range []struct{ names, size int }{{40, 3 << 20}, {10_000, 1}} {
		if got := hostile.do("flood %s %d %d", victim.role.Name, flood.names, flood.size); got != "" {
			t.Fatal(got)
		}
		if after := victim.heap(); after-before > 4*gossipRoom {
			t.Errorf("gossip about %d names, each of %d bytes, takes %d MiB", flood.names, flood.size, (after-before)>>20)
		}
	}
	other.do("set colour red")
	victim.until("red", "get colour")
	victim.do("set shape round")
	other.until("round", "get shape")
	silent(m...)
}

// heap returns how many bytes are in use in the process.
func (c *child) heap() int {
	c.t.Helper()
	n, err := strconv.Atoi(c.do("heap"))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// limited returns a limit of a cluster with these members.
func limited(ids ...string) *gossipLimit {
	members := make(map[string]bool)
	for _, id := range ids {
		members[id] = true
	}
	return newGossipLimit(0, func() map[string]bool { return members }, slog.New(slog.DiscardHandler))
}

// about returns gossip about one member.
func about(id, key string, sequence, size int) *cluster.GossipState {
	return &cluster.GossipState{Members: map[string]*cluster.GossipMemberState{id: {Values: map[string]*cluster.GossipKeyValue{
		key: {SequenceNumber: int64(sequence), Value: &anypb.Any{Value: make([]byte, size)}},
	}}}}
}

// taken reports whether gossip is let through.
func (g *gossipLimit) taken(s *cluster.GossipState) bool {
	g.filterState(s)
	return len(s.Members) > 0
}

func TestGossipLimit(t *testing.T) {
	g := limited("a", "b", "c", "d")
	const part = gossipRoom / 4
	fill := func(id string) (n int) {
		for g.taken(about(id, fmt.Sprint("key", n), 1, 64<<10)) {
			n++
		}
		return n
	}
	if n := fill("x"); n < gossipRoom*9/10>>16 || n > gossipRoom>>16 {
		t.Errorf("%d KiB are let through about who is no member", n*64)
	}
	if g.taken(about("y", "key", 1, part/8)) {
		t.Error("there is room for another one that is no member")
	}
	if n := fill("a"); n < gossipRoom*9/10>>16 || n > gossipRoom>>16 {
		t.Errorf("%d KiB are let through about a member", n*64)
	}
	for _, id := range []string{"b", "test@b", "b"} {
		fill(id)
	}
	if n := g.about["b"].bytes; n < part*9/10 || n > part {
		t.Errorf("a member has %d bytes beside one that has used up all", n)
	}
	if !g.taken(about("c", "key", 1, part/2)) {
		t.Error("a member has no part")
	}
	for i := range 100 {
		if !g.taken(about("c", "key", 2+i, part/2)) {
			t.Fatal("a newer value finds no room")
		}
	}
	if g.taken(about("c", "key", 50, 0)) {
		t.Error("an older value is let through")
	}
	if !g.taken(about("c", "key", 1000, 0)) || !g.taken(about("c", "other", 1, part/2)) {
		t.Error("a smaller value frees nothing")
	}
	if g.taken(about("c", "other", 2, part)) {
		t.Error("a value grows beyond the part")
	}
	long := about(strings.Repeat("d", part/4), "key", 1, 0)
	if g.taken(long) { // Proto.Actor keeps it once for each member
		t.Error("a long name is let through")
	}
	hidden := about("d", "key", 1, 0)
	hidden.Members["d"].ProtoReflect().SetUnknown([]byte{0x7a, 1, 'x'})
	if g.filterState(hidden); len(hidden.Members["d"].ProtoReflect().GetUnknown()) > 0 {
		t.Error("a field that is not known is let through")
	}
	if n := fill("d"); n == 0 {
		t.Error("the last member has no part")
	}
}

// Dropped gossip is logged once, with the name of the member.
func TestGossipDropIsReported(t *testing.T) {
	var log bytes.Buffer
	g := limited()
	g.log = slog.New(slog.NewTextHandler(&log, nil))
	for i := range 100 {
		g.filterState(about(fmt.Sprint("x", i), "key", 1, 2*gossipRoom))
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "x0") {
		t.Errorf("the log is %q", got)
	}
	if len(g.about) > 0 {
		t.Errorf("%d names of dropped gossip are kept", len(g.about))
	}
}
