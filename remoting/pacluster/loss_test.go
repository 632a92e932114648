package pacluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// grainsAt returns identities of grains that are on a member, which others have asked for.
func grainsAt(c *child, name string, n int) []string {
	c.t.Helper()
	var ids []string
	for i := 0; len(ids) < n; i++ {
		id := fmt.Sprintf("g%d", i)
		if c.do("where %s", id) == name {
			ids = append(ids, id)
		}
		if i > 100*n {
			c.t.Fatalf("%d of %d grains are at %s", len(ids), i, name)
		}
	}
	return ids
}

// recovered returns how long a member's "recover" took. Every request must be answered.
func recovered(t *testing.T, answer string) time.Duration {
	t.Helper()
	took, failed, _ := strings.Cut(answer, " ")
	ms, err := strconv.Atoi(took)
	if err != nil || failed != "0" {
		t.Fatalf("recovering: %q", answer)
	}
	return time.Duration(ms) * time.Millisecond
}

// When a member is killed, its grains answer again as soon as the provider has found that, on the
// others. Their watchers are notified immediately.
func TestKill(t *testing.T) {
	m := startAll(t, roles(t, 3)...)
	ids := grainsAt(m[0], m[2].role.Name, 30)
	if got := m[1].do("spawn %s watched %s", m[2].role.Name, spawnKind); got != "activator/Remote$watched 0" {
		t.Fatal(got)
	}
	m[0].do("watch %s activator/Remote$watched", m[2].role.Name)
	m[2].Kill()
	asked := []string{m[0].begin("recover %s", strings.Join(ids, " ")), m[1].begin("recover %s", strings.Join(ids, " "))}
	m[0].want("terminated activator/Remote$watched AddressTerminated", "its member is gone")
	for i, c := range m[:2] {
		took := recovered(t, c.ends(asked[i]))
		t.Logf("%s: 30 grains answer again after %v; the provider asks each %v", c.role.Name, took, testRefresh)
		if took > testRefresh+busy {
			t.Errorf("30 grains answer again after %v", took)
		}
		c.knows(m[0].role.Name, m[1].role.Name)
	}
	silent(m[:2]...)
}

// A request that may have been handled by a killed member fails immediately, and is not sent
// again.
func TestUnknown(t *testing.T) {
	m := startAll(t, roles(t, 3)...)
	id := grainsAt(m[0], m[2].role.Name, 1)[0]
	asked := m[0].begin("count %s 10000", id)
	m[2].want("counted "+id+" 1", "the grain has the request")
	m[2].Kill()
	begun := time.Now()
	if got := m[0].ends(asked); !strings.HasPrefix(got, "error not known whether") {
		t.Errorf("a request under way gives %q", got)
	}
	if d := time.Since(begun); d > busy {
		t.Errorf("that takes %v", d)
	}
	if got := m[0].do("count %s 0", id); got != "1" {
		t.Errorf("the new grain counts %s: the request has been sent again", got)
	}
}

// A member that stands still is dropped: its grains are made anew elsewhere. When it continues,
// the others refuse it, and it learns that.
func TestFrozen(t *testing.T) {
	m := startAll(t, roles(t, 3)...)
	ids := grainsAt(m[0], m[2].role.Name, 30)
	m[2].Freeze()
	asked := m[0].begin("recover %s", strings.Join(ids, " "))
	took := recovered(t, m[0].ends(asked))
	t.Logf("30 grains answer again after %v", took)
	if took > 2*defaultSilence { // counted in ticks, which take longer on a busy machine
		t.Errorf("30 grains answer again after %v", took)
	}
	begun := time.Now()
	m[2].Signal(unix.SIGCONT)
	m[2].want("expelled", "the others refuse it")
	t.Logf("it learns that after %v", time.Since(begun))
	m[2].want("shut down", "it stops")
	m[2].leaves()
	for _, c := range m[:2] { // one of them may have had an answer just in time
		c.knows(m[0].role.Name, m[1].role.Name)
		c.never("expelled", "it has done nothing")
	}
	again := start(t, m[2].role)
	for _, c := range append(m[:2:2], again) {
		c.knows(m[0].role.Name, m[1].role.Name, m[2].role.Name)
	}
	silent(m[0], m[1], again)
}

// A process that takes the place of one that was killed, with its name, is another member.
func TestSameName(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 2)...)
	for range 3 {
		id := grainsAt(m[0], m[1].role.Name, 1)[0]
		m[0].do("count %s 0", id)
		m[1].Kill()
		m[1] = start(t, m[1].role)
		m[1].want("= member ", "it starts")
		m[1].knows(m[0].role.Name, m[1].role.Name)
		m[0].knows(m[0].role.Name, m[1].role.Name)
		m[0].until(m[1].role.Name, "where %s", id)
		if got := m[0].do("count %s 0", id); got != "1" {
			t.Errorf("a new grain counts %s", got)
		}
		m[0].do("where other") // an identity is found again
	}
	silent(m...)
	m[1].leaves()
	m[0].leaves()
}

// A leaving member ends its grains in order, one message after the other, and requests for them
// are served by the others.
func TestLeaves(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 3)...)
	ids := grainsAt(m[0], m[2].role.Name, 10)
	m[2].Signal(unix.SIGTERM)
	asked := m[0].begin("recover %s", strings.Join(ids, " "))
	for _, id := range ids {
		m[2].want("stopped "+id+".", "its grains end in order")
	}
	took := recovered(t, m[0].ends(asked))
	t.Logf("10 grains answer again after %v", took)
	m[2].left()
	for _, c := range m[:2] {
		c.never("expelled", "it has done nothing")
		c.knows(m[0].role.Name, m[1].role.Name)
	}
}

// A provider that does not end, because its server has gone, keeps no grain from ending in order.
func TestLeavesWithoutProvider(t *testing.T) {
	t.Parallel()
	all := roles(t, 2)
	all[1].Stuck = true
	m := startAll(t, all...)
	ids := grainsAt(m[0], m[1].role.Name, 5)
	m[1].Signal(unix.SIGTERM)
	for _, id := range ids {
		m[1].want("stopped "+id+".", "its grains end in order")
	}
	m[1].want("= left", "it ends all the same")
	m[1].want("provider: it has not ended in 5s", "and says what has not")
	m[0].knows(m[0].role.Name) // through gossip
}

// A member that makes up by gossip that another one has left does not get it removed: the others
// ask that one, and it answers.
func TestForgedLeave(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 3)...)
	id := m[1].do("id")
	if got := m[2].do("forge %s %s", m[0].role.Name, id); got != "" {
		t.Fatal(got)
	}
	answered := make(map[string]bool)
	for deadline := time.Now().Add(patience); len(answered) < 3; time.Sleep(10 * time.Millisecond) {
		if answered[m[0].do("answered %s", id)] = true; time.Now().After(deadline) {
			t.Fatal("it is not asked whether it is there")
		}
	}
	for _, c := range m {
		c.never("expelled", "nobody has left")
		c.knows(m[0].role.Name, m[1].role.Name, m[2].role.Name)
	}
}
