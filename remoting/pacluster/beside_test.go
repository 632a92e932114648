package pacluster

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The same programs run on members of Proto.Actor's own, over gRPC, and on this package's. Each
// counts outcomes, such as grains, that are as they have to be. This package's have to be all, and
// never fewer than the others'.
//
// The rotation of keys is not compared, because Proto.Actor's members have none: TestRotateKeys is
// for this package's only.
func TestBeside(t *testing.T) {
	programs := []besideProgram{
		{"grains stay while etcd is away", 3, besideOutage},
		{"grains answer after a restart", 3, besideRestart},
		{"grains stay while two members cannot reach each other", 3, besidePartialCut},
		{"grains stay while a member does not hear another one", 3, besideOneWayCut},
		{"grains run once while a member is cut off", 3, besideCutOff},
		{"grains of ten members answer after three are killed", 10, besideTen},
		{"messages of pub/sub arrive once while a member is killed", 3, besidePubSub},
	}
	type result struct{ good, of int }
	var mu sync.Mutex
	results := make(map[string]map[bool]result)
	t.Run("programs", func(t *testing.T) {
		for _, p := range programs {
			results[p.name] = make(map[bool]result)
			for _, stock := range []bool{false, true} {
				t.Run(fmt.Sprint(p.name, ", stock ", stock), func(t *testing.T) {
					if p.members <= 3 { // more would need all processors
						t.Parallel()
					}
					good, of := p.run(t, startBeside(t, p.members, stock))
					mu.Lock()
					defer mu.Unlock()
					results[p.name][stock] = result{good, of}
				})
			}
		}
	})
	for name, is := range results {
		ours, stock := is[false], is[true]
		t.Logf("%s: %d of %d here, %d with Proto.Actor's remote", name, ours.good, ours.of, stock.good)
		if ours.good < ours.of || ours.good < stock.good {
			t.Errorf("%s: %d of %d, and %d with Proto.Actor's remote", name, ours.good, ours.of, stock.good)
		}
	}
}

// besideProgram is a program for so many members.
type besideProgram struct {
	name    string
	members int
	run     func(*testing.T, *beside) (good, of int)
}

// beside is a cluster whose first member reaches the others, and etcd, by ways that can be cut.
type beside struct {
	s      *etcdServer
	m      []*child
	ways   map[[2]int]*proxy
	toEtcd *proxy // of the first member
}

func startBeside(t *testing.T, members int, stock bool) *beside {
	t.Helper()
	b := &beside{s: startEtcd(t)}
	all := etcdRoles(t, b.s, members)
	for i := range all {
		all[i].Stock, all[i].Contact = stock, true
	}
	b.ways, b.toEtcd = waysOfFirst(t, all), newProxy(t, b.s.addr)
	all[0].Etcd = b.toEtcd.addr()
	if stock {
		b.m = startInTurn(t, all...)
	} else {
		b.m = startAll(t, all...)
	}
	if n := countAll(b.m[0], "1"); n != besideGrains {
		t.Fatalf("%d grains answer", n)
	}
	return b
}

// startInTurn starts members one after the other, and waits until each knows all. Members of
// Proto.Actor's own that start at the same time miss each other now and then: they list the members
// in etcd first, and watch for more afterwards.
func startInTurn(t *testing.T, all ...role) (members []*child) {
	t.Helper()
	var names []string
	for _, r := range all {
		c := start(t, r)
		c.want("= member ", "it has started")
		members, names = append(members, c), append(names, r.Name)
		for _, m := range members {
			m.knows(names...)
		}
	}
	return members
}

const besideGrains = 12

// askAll asks all grains at the same time through a member.
func askAll(c *child) (commands []string) {
	for i := range besideGrains {
		commands = append(commands, c.begin("count g%d 0", i))
	}
	return commands
}

// countAll asks all grains, and returns how many of them have counted so far.
func countAll(c *child, counts ...string) (n int) {
	for _, command := range askAll(c) {
		if slices.Contains(counts, c.ends(command)) {
			n++
		}
	}
	return n
}

// etcd stands still for longer than its leases last. The grains that have not been made anew go on
// counting.
func besideOutage(_ *testing.T, b *beside) (good, of int) {
	_ = b.s.cmd.Process.Signal(unix.SIGSTOP)
	time.Sleep(5 * time.Second)
	_ = b.s.cmd.Process.Signal(unix.SIGCONT)
	time.Sleep(etcdLate) // members register again
	return countAll(b.m[0], "2"), besideGrains
}

// A member is killed and started again at its address before etcd has removed it. Then it asks for
// all grains, those of the killed one included, which are made anew.
func besideRestart(t *testing.T, b *beside) (good, of int) {
	b.m[2].Kill()
	b.m[2] = start(t, b.m[2].role)
	b.m[2].want("= member ", "it has started")
	time.Sleep(etcdLate)
	return countAll(b.m[2], "1", "2"), besideGrains
}

// Two members cannot reach each other, and both reach a third one. Their grains go on counting,
// then and afterwards.
func besidePartialCut(_ *testing.T, b *beside) (good, of int) {
	set := func(cut bool) {
		for _, pair := range [][2]int{{0, 1}, {1, 0}} {
			b.ways[pair].set(cut)
		}
	}
	return besideCut(b, set)
}

// What a member sends another one does not arrive. Its answers do.
func besideOneWayCut(_ *testing.T, b *beside) (good, of int) {
	return besideCut(b, func(cut bool) {
		b.ways[[2]int{0, 1}].hold(there, cut)
		b.ways[[2]int{1, 0}].hold(back, cut)
	})
}

func besideCut(b *beside, set func(cut bool)) (good, of int) {
	set(true)
	time.Sleep(2 * etcdLate)
	during := countAll(b.m[2], "2")
	set(false)
	time.Sleep(etcdLate)
	return during + countAll(b.m[0], "3"), 2 * besideGrains
}

// A member reaches neither etcd nor the others. No grain answers on both sides.
func besideCutOff(_ *testing.T, b *beside) (good, of int) {
	b.toEtcd.set(true)
	for _, p := range b.ways {
		p.set(true)
	}
	time.Sleep(3 * etcdLate)
	sides := []*child{b.m[0], b.m[1]}
	var asked [2][]string
	for i, c := range sides {
		asked[i] = askAll(c)
	}
	for g := range besideGrains {
		answers := 0
		for i, c := range sides {
			if got := c.ends(asked[i][g]); got == "1" || got == "2" {
				answers++
			}
		}
		if answers == 1 {
			good++
		}
	}
	return good, besideGrains
}

// Three members of ten are killed. All grains answer on the others.
func besideTen(_ *testing.T, b *beside) (good, of int) {
	for _, c := range b.m[7:] {
		c.Kill()
	}
	time.Sleep(2 * etcdLate)
	return countAll(b.m[3], "1", "2"), besideGrains
}

// A member that has subscribed to a topic is killed. The others receive each message of the topic
// once.
func besidePubSub(t *testing.T, b *beside) (good, of int) {
	const each = 10
	topic := topicAt(b.m[0])
	for _, c := range b.m {
		if got := c.do("subscribe %s", topic); got != "" {
			t.Fatal(got)
		}
	}
	b.m[2].Kill()
	left := b.m[:2]
	for i := range each {
		for _, c := range left {
			c.do("publish %s %d", topic, i)
		}
	}
	time.Sleep(etcdLate)
	for _, c := range left {
		n, err := strconv.Atoi(c.do("heard"))
		if err != nil {
			t.Fatal(err)
		}
		good += min(n, 2*2*each-n) // what is heard twice counts against it
	}
	return good, 2 * 2 * each
}
