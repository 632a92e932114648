package pacluster

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The same programs run on members of Proto.Actor's own, over gRPC, and on this package's. Each
// counts the grains that are as they have to be. This package's have to be all, and never fewer.
//
// Not compared are partial and one-way cuts, the rotation of keys, ten members, and pub/sub while a
// member is killed. TestPartition, TestPartialCut, TestEtcdCutOff, TestRotateKeys, TestTenMembers
// and TestPubSubUnderKill run on this package's members only. Proto.Actor's remote dials the
// address in a PID, so cuts would need a gRPC dialer for its members that uses role.Dial. One-way
// cuts are not tested here either: a proxy is cut in both directions.
func TestBeside(t *testing.T) {
	programs := map[string]func(*testing.T, *etcdServer, []*child) int{
		"grains stay while etcd is away": besideOutage,
		"grains answer after a restart":  besideRestart,
	}
	var mu sync.Mutex
	good := make(map[string]map[bool]int)
	t.Run("programs", func(t *testing.T) {
		for name, run := range programs {
			good[name] = make(map[bool]int)
			for _, stock := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", stock ", stock), func(t *testing.T) {
					t.Parallel()
					s := startEtcd(t)
					all := etcdRoles(t, s, 3)
					for i := range all {
						all[i].Stock = stock
					}
					begin := startAll
					if stock {
						begin = startInTurn
					}
					n := run(t, s, begin(t, all...))
					mu.Lock()
					defer mu.Unlock()
					good[name][stock] = n
				})
			}
		}
	})
	for name, is := range good {
		t.Logf("%s: %d of %d here, %d with Proto.Actor's remote", name, is[false], besideGrains, is[true])
		if is[false] < besideGrains || is[false] < is[true] {
			t.Errorf("%s: %d of %d, and %d with Proto.Actor's remote", name, is[false], besideGrains, is[true])
		}
	}
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

// countAll asks all grains at the same time through a member, and returns how many of them answer
// want.
func countAll(c *child, want string) (n int) {
	var commands []string
	for i := range besideGrains {
		commands = append(commands, c.begin("count g%d 0", i))
	}
	for _, command := range commands {
		if c.ends(command) == want {
			n++
		}
	}
	return n
}

// etcd stands still for longer than its leases last. The grains that have not been made anew go on
// counting.
func besideOutage(t *testing.T, s *etcdServer, m []*child) int {
	if n := countAll(m[0], "1"); n != besideGrains {
		t.Fatalf("%d grains answer", n)
	}
	_ = s.cmd.Process.Signal(unix.SIGSTOP)
	time.Sleep(5 * time.Second)
	_ = s.cmd.Process.Signal(unix.SIGCONT)
	time.Sleep(etcdLate) // members register again
	return countAll(m[0], "2")
}

// A member is killed and started again at its address before etcd has removed it. Then another one
// asks for all grains, those of the killed one included, which are made anew.
func besideRestart(t *testing.T, _ *etcdServer, m []*child) int {
	if n := countAll(m[0], "1"); n != besideGrains {
		t.Fatalf("%d grains answer", n)
	}
	m[2].Kill()
	m[2] = start(t, m[2].role)
	m[2].want("= member ", "it has started")
	time.Sleep(etcdLate)
	n := 0
	for i := range besideGrains {
		if got := m[2].do("count g%d 0", i); got == "1" || got == "2" {
			n++
		}
	}
	return n
}
