package pacluster

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var outages = flag.String("outages", "5s", "how long etcd is away in TestEtcdOutage, such as 5s,30s,120s")

// While etcd is away, stopped or killed, its leases end. When it is back, it removes the members
// one by one until they have registered again. Their network is whole, so they stay members, and
// their grains stay where they are.
func TestEtcdOutage(t *testing.T) {
	t.Parallel()
	for _, text := range strings.Split(*outages, ",") {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint("stopped for ", d), func(t *testing.T) {
			outage(t, d, func(s *etcdServer) { _ = s.cmd.Process.Signal(unix.SIGSTOP) },
				func(s *etcdServer) { _ = s.cmd.Process.Signal(unix.SIGCONT) })
		})
		t.Run(fmt.Sprint("killed for ", d), func(t *testing.T) { outage(t, d, (*etcdServer).kill, (*etcdServer).start) })
	}
}

func outage(t *testing.T, d time.Duration, down, up func(*etcdServer)) {
	s := startEtcd(t)
	all := etcdRoles(t, s, 3)
	all[0].Contact, all[1].Contact = true, true // has no effect here
	m := startAll(t, all...)
	at := make(map[string]string)
	for i := range 12 {
		id := fmt.Sprint("g", i)
		at[id] = m[i%3].do("where %s", id)
		m[i%3].do("count %s 0", id)
	}
	before, _ := s.leases()
	down(s)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for i, c := range m { // grains answer during the outage
			if got, want := c.do("where g%d", i), at[fmt.Sprint("g", i)]; got != want {
				t.Fatalf("g%d is at %s, and was at %s", i, got, want)
			}
		}
	}
	up(s)
	for deadline := time.Now().Add(patience + d); ; time.Sleep(100 * time.Millisecond) {
		keys, others := s.leases()
		old := 0
		for l := range before {
			if keys[l] || others[l] {
				old++
			}
		}
		if len(keys) == len(m) && old == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("etcd has %d members, and %d old leases", len(keys), old)
		}
	}
	for _, c := range m {
		c.until("0", "missing")
		c.knows(all[0].Name, all[1].Name, all[2].Name)
		c.never("expelled", "it has done nothing")
		c.never("suspended", "all members answer")
	}
	for id, where := range at {
		for _, c := range m {
			if got := c.do("where %s", id); got != where {
				t.Errorf("%s is at %s, and was at %s", id, got, where)
			}
		}
		if got := m[0].do("count %s 0", id); got != "2" {
			t.Errorf("%s counts %s: it was made anew", id, got)
		}
	}
	silent(m...)
}

// A member that is started again at its address joins before etcd has removed the one that was
// killed. If another member is frozen and given up then, it is notified, and the restarted one
// stays.
func TestEtcdRestart(t *testing.T) {
	t.Parallel()
	m := startAll(t, etcdRoles(t, startEtcd(t), 2)...)
	names := []string{m[0].role.Name, m[1].role.Name}
	m[1].Kill()
	m[1] = start(t, m[1].role)
	for _, c := range m {
		c.knows(names...)
	}
	m[0].until("false", "twice") // the killed one
	m[0].Freeze()
	m[1].knows(names[1])
	m[0].Signal(unix.SIGCONT)
	m[0].want("expelled", "the other one has given it up")
	m[0].want("shut down", "it stops")
	m[1].never("expelled", "it has done nothing")
	m[0].leaves()
	m[0] = start(t, m[0].role)
	for _, c := range m {
		c.knows(names...)
	}
	silent(m...)
}

// apart returns three members that observe their contact to etcd, and the ways between the first
// and the others.
func apart(t *testing.T, s *etcdServer) (all []role, ways []*proxy) {
	t.Helper()
	all = etcdRoles(t, s, 3)
	for i := range all {
		all[i].Contact = true
	}
	return all, slices.Collect(maps.Values(waysOfFirst(t, all)))
}

// waysOfFirst makes ways between the first member and each other one, keyed by who dials whom.
func waysOfFirst(t *testing.T, all []role) map[[2]int]*proxy {
	t.Helper()
	ways := make(map[[2]int]*proxy)
	for i := range all {
		all[i].Dial = make(map[string]string)
		for j := range all {
			all[i].Dial[all[j].Name] = all[j].Name
			if i != j && (i == 0 || j == 0) {
				p := newProxy(t, all[j].Name)
				all[i].Dial[all[j].Name], ways[[2]int{i, j}] = p.addr(), p
			}
		}
	}
	return ways
}

// While etcd is away, members that miss another one stop their grains, because it might be with
// etcd. When all answer again, they have grains, and no member was removed.
func TestEtcdOutageAndCut(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	all, ways := apart(t, s)
	m := startAll(t, all...)
	id := grainsAt(m[0], all[1].Name, 1)[0]
	m[0].do("count %s 0", id)
	_ = s.cmd.Process.Signal(unix.SIGSTOP)
	for _, p := range ways {
		p.set(true)
	}
	for _, c := range m {
		c.want("event suspended", "it misses a member, and etcd")
	}
	m[1].want("stopped "+id+".", "the member may have been removed")
	if got := m[0].do("counts"); !strings.HasPrefix(got, "{Members:3 ") || strings.Contains(got, "Silent:0") || !strings.Contains(got, "Suspended:true") {
		t.Errorf("a suspended member counts %s", got)
	}
	if got := m[2].do("where %s", id); !strings.Contains(got, ErrSuspended.Error()) {
		t.Errorf("asked for a grain, a suspended member answers %q", got)
	}
	for _, p := range ways {
		p.set(false)
	}
	for _, c := range m {
		c.want("event resumed", "all answer")
		c.until("{Members:3 Silent:0 Missing:0 Suspended:false Expelled:false}", "counts")
	}
	_ = s.cmd.Process.Signal(unix.SIGCONT)
	m[0].until(all[1].Name, "where %s", id)
	if got := m[0].do("count %s 0", id); got != "1" {
		t.Errorf("it counts %s", got)
	}
	for _, c := range m {
		c.knows(all[0].Name, all[1].Name, all[2].Name)
		c.never("expelled", "all answer")
	}
	silent(m...)
}

// A member that neither etcd nor the others reach stops its grains, so that none runs twice. When
// the network is whole again, it learns that it was removed.
func TestEtcdCutOff(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	all, ways := apart(t, s)
	toEtcd := newProxy(t, s.addr)
	all[0].Etcd, ways = toEtcd.addr(), append(ways, toEtcd)
	m := startAll(t, all...)
	ids := grainsAt(m[0], all[0].Name, 5)
	for _, p := range ways {
		p.set(true)
	}
	m[0].want("event suspended", "the others may have removed it")
	for _, id := range ids {
		m[0].want("stopped "+id+".", "it may run elsewhere")
	}
	for _, c := range m[1:] {
		c.knows(all[1].Name, all[2].Name)
		for _, id := range ids {
			c.do("where %s", id)
		}
	}
	for _, p := range ways {
		p.set(false)
	}
	m[0].want("expelled", "the others have removed it")
	m[0].never("event resumed", "it was removed")
	m[0].want("shut down", "it stops")
	m[0].leaves()
	for _, c := range m[1:] {
		c.never("expelled", "it has done nothing")
		c.never("event suspended", "it has contact to etcd")
	}
	silent(m[1:]...)
}
