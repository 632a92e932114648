package pacluster

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/etcd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"
)

// provider returns the automanaged one, or etcd.
func (p *process) provider() (cluster.ClusterProvider, error) {
	switch {
	case p.role.Stuck:
		a, err := Automanaged{Listen: p.role.Health[0], Members: p.role.Health, Refresh: testRefresh}.Provider()
		return stuck{a}, err
	case p.role.Etcd == "":
		return Automanaged{Listen: p.role.Health[0], Members: p.role.Health, Refresh: testRefresh}.Provider()
	}
	return etcd.NewWithConfig("/rdmactor", clientv3.Config{Endpoints: []string{p.role.Etcd}, DialTimeout: 5 * time.Second},
		etcd.WithKeepAliveTTL(etcdTTL), etcd.WithRetryInterval(100*time.Millisecond))
}

// stuck is a provider that waits forever for its server when it is shut down.
type stuck struct{ cluster.ClusterProvider }

func (stuck) Shutdown(bool) error { select {} }

const (
	etcdTTL = time.Second
	// etcdLate is how long etcd keeps a lease, at most: its least is more than a second, and it
	// looks at them each half second.
	etcdLate = 3500 * time.Millisecond
)

// contact asks etcd, and is for a ttl that a busy machine keeps.
func (p *process) contact() (ask func(context.Context) error, ttl time.Duration) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{p.role.Etcd}, DialTimeout: 5 * time.Second})
	if err != nil {
		return func(context.Context) error { return err }, 2 * etcdLate
	}
	return func(ctx context.Context) error {
		_, err := c.Get(ctx, "x")
		return err
	}, 2 * etcdLate
}

// etcdServer is Debian's etcd.
type etcdServer struct {
	t    *testing.T
	args []string
	addr string // where it serves clients
	log  bytes.Buffer
	cmd  *exec.Cmd
}

// startEtcd starts etcd, which the test's end stops.
func startEtcd(t *testing.T) *etcdServer {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatalf("%v; install it: apt-get install etcd-server", err)
	}
	addrs := freeAddrs(t, 2)
	client, peer := "http://"+addrs[0], "http://"+addrs[1]
	s := &etcdServer{t: t, addr: addrs[0], args: []string{
		path, "--data-dir", t.TempDir(), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
	}}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("etcd: %s", s.log.String())
		}
	})
	s.start()
	s.client(func(ctx context.Context, c *clientv3.Client) {
		for {
			if _, err := c.Get(ctx, "x"); err == nil {
				return
			} else if ctx.Err() != nil {
				t.Fatalf("etcd does not serve: %v", err)
			}
		}
	})
	return s
}

// start starts the process, also after a kill.
func (s *etcdServer) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *etcdServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *etcdServer) client(do func(context.Context, *clientv3.Client)) {
	s.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.addr}, DialTimeout: patience})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	do(ctx, c)
}

// leases returns the leases of the members' keys, and those that have no key.
func (s *etcdServer) leases() (keys, others map[clientv3.LeaseID]bool) {
	s.t.Helper()
	keys, others = make(map[clientv3.LeaseID]bool), make(map[clientv3.LeaseID]bool)
	s.client(func(ctx context.Context, c *clientv3.Client) {
		got, err := c.Get(ctx, "/rdmactor", clientv3.WithPrefix())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, kv := range got.Kvs {
			keys[clientv3.LeaseID(kv.Lease)] = true
		}
		all, err := c.Leases(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, l := range all.Leases {
			if !keys[l.ID] {
				others[l.ID] = true
			}
		}
	})
	return keys, others
}

// etcdRoles returns the roles of n members that etcd provides.
func etcdRoles(t *testing.T, s *etcdServer, n int) []role {
	t.Helper()
	all := roles(t, n)
	for i := range all {
		all[i].Health, all[i].Etcd = nil, s.addr
	}
	return all
}

// With etcd as the provider, members need not know one another. A killed member is found when its
// lease ends, one that leaves immediately.
func TestEtcd(t *testing.T) {
	m := startAll(t, etcdRoles(t, startEtcd(t), 3)...)
	ids := grainsAt(m[0], m[2].role.Name, 30)
	m[2].Kill()
	took := recovered(t, m[0].do("recover %s", strings.Join(ids, " ")))
	t.Logf("30 grains answer again after %v", took)
	if took > etcdLate+busy {
		t.Errorf("30 grains answer again after %v", took)
	}
	m[0].knows(m[0].role.Name, m[1].role.Name)

	m[2] = start(t, m[2].role)
	for _, c := range m {
		c.knows(m[0].role.Name, m[1].role.Name, m[2].role.Name)
	}
	m[0].until(m[2].role.Name, "where %s", ids[0])
	m[1].Freeze()
	m[0].knows(m[0].role.Name, m[2].role.Name)
	m[1].Signal(unix.SIGCONT)
	m[1].want("expelled", "its lease has ended")
	m[1].leaves()
	m[2].leaves()
	m[0].knows(m[0].role.Name)
	m[0].until(m[0].role.Name, "where %s", ids[0])
	silent(m[0])
}
