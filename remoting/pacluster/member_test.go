package pacluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func sorted(names ...string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ",")
}

// Grains answer all members, each from one place, and not all from the same.
func TestGrains(t *testing.T) {
	t.Parallel()
	members := startAll(t, roles(t, 2)...)
	at := make(map[string]int)
	for i := range 20 {
		where := members[0].do("where g%d", i)
		at[where]++
		if there := members[1].do("where g%d", i); there != where {
			t.Errorf("g%d is at %s and at %s", i, where, there)
		}
	}
	for _, c := range members {
		if at[c.role.Name] == 0 {
			t.Errorf("no grain is at %s: %v", c.role.Name, at)
		}
	}
	for i := range 5 {
		if got, want := members[i%2].do("count g1 0"), fmt.Sprint(i+1); got != want {
			t.Errorf("g1 counts %s, want %s", got, want)
		}
	}
	silent(members...)
	for _, c := range members {
		c.leaves()
	}
}

// remote.SpawnNamed spawns on another member, and the spawner may watch and stop the actor.
func TestSpawnNamed(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 2)...)
	other := m[1].role.Name
	if got, want := m[0].do("spawn %s greeter %s", other, spawnKind), "activator/Remote$greeter 0"; got != want {
		t.Fatalf("spawning gives %q, want %q", got, want)
	}
	const id = "activator/Remote$greeter"
	if got := m[0].do("ask %s %s", other, id); got != "hello" {
		t.Errorf("it answers %q", got)
	}
	m[0].do("watch %s %s", other, id)
	m[0].do("watch %s activator/nobody", other)
	m[0].want("terminated activator/nobody NotFound", "nobody has that name")
	m[0].do("stop %s %s", other, id)
	m[0].want("terminated "+id+" Stopped", "it was stopped")
	if got := m[0].do("ask %s %s", other, id); got != "error future: dead letter" {
		t.Errorf("when it is stopped, it answers %q", got)
	}
	m[0].do("spawn %s second %s", other, spawnKind)
	if got := m[0].do("spawn %s x unknown", other); !strings.HasPrefix(got, "error") {
		t.Errorf("spawning an unknown kind gives %q", got)
	}
	if got := m[0].do("ask %s activator/Remote$second", other); got != "hello" {
		t.Errorf("after that, another one answers %q", got)
	}
	if got := m[0].do("ask %s guardian", other); !strings.Contains(got, "refused") {
		t.Errorf("what is not exposed answers %q", got)
	}
	silent(m...)
}

// Who subscribes hears what anybody publishes, on whichever member the topic is.
func TestPubSub(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 3)...)
	for i := range 5 {
		topic := fmt.Sprint("topic", i)
		for _, c := range m[:2] {
			if got := c.do("subscribe %s", topic); got != "" {
				t.Fatal(got)
			}
		}
		for _, c := range m {
			text := fmt.Sprintf("from-%s-in-%s", c.role.Name, topic)
			if got := c.do("publish %s %s", topic, text); got != "" {
				t.Fatal(got)
			}
			m[0].want("heard "+text+" ", "it has subscribed")
			m[1].want("heard "+text+" ", "it has subscribed")
		}
	}
	m[2].never("heard", "it has not subscribed")
	for i := range 5 { // stopping has a separate rule
		m[2].do("publish-stop topic%d", i)
		text := fmt.Sprintf("after-%d", i)
		m[0].do("publish topic%d %s", i, text)
		m[0].want("heard "+text+" ", "it has not been stopped")
		m[1].want("heard "+text+" ", "it has not been stopped")
	}
	silent(m...)
}

// The gossip of a member reaches all.
func TestGossip(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 3)...)
	m[0].do("set colour red")
	m[1].do("set colour blue")
	for _, c := range m {
		c.until("blue,red", "get colour")
	}
	silent(m...)
}

// A client uses grains, and has none.
func TestClient(t *testing.T) {
	t.Parallel()
	all := roles(t, 2)
	all[1].Client = true
	all[1].Health = []string{all[1].Health[0], all[0].Health[0]}
	all[0].Health = all[0].Health[:1]
	m := startAll(t, all...)
	for i := range 5 {
		if got := m[1].do("where g%d", i); got != m[0].role.Name {
			t.Errorf("g%d is at %q", i, got)
		}
	}
	silent(m...)
	m[1].leaves()
	m[0].leaves()
}

// Names need not be addresses.
func TestResolve(t *testing.T) {
	t.Parallel()
	all := roles(t, 2)
	dial := make(map[string]string)
	for i := range all {
		name := fmt.Sprintf("chat-%d.chat:7471", i)
		dial[name], all[i].Listen, all[i].Name = all[i].Name, all[i].Name, name
	}
	for i := range all {
		all[i].Dial = dial
	}
	m := startAll(t, all...)
	at := make(map[string]bool)
	for i := range 20 {
		at[m[0].do("where g%d", i)] = true
	}
	if !at[all[0].Name] || !at[all[1].Name] || len(at) != 2 {
		t.Errorf("the grains are at %v", at)
	}
	silent(m...)
}

// A grain that was made on the wrong member, because members learn of a change at different times,
// does not stay there.
func TestPlace(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 2)...)
	id := grainsAt(m[1], m[0].role.Name, 1)[0]
	if got := m[0].do("activate %s %s", m[1].role.Name, id); got != m[1].role.Name {
		t.Fatalf("there is no second one, but %q", got)
	}
	m[1].want("stopped "+id+".", "it belongs to the other member")
	m[0].never("stopped", "the other one stays")
	if got := m[1].do("where %s", id); got != m[0].role.Name {
		t.Errorf("it is at %q", got)
	}
}
