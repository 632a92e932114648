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

// provider is the automanaged one, or etcd.
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

// stuck is a provider that waits for its server for ever when it is shut down.
type stuck struct{ cluster.ClusterProvider }

func (stuck) Shutdown(bool) error { select {} }

const (
	etcdTTL = time.Second
	// etcdLate is how long etcd keeps a lease, at most: its least is more than a second, and it
	// looks at them each half second.
	etcdLate = 3500 * time.Millisecond
)

// startEtcd starts Debian's etcd, and returns where it serves clients.
func startEtcd(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatalf("%v; install it: apt-get install etcd-server", err)
	}
	addrs := freeAddrs(t, 2)
	client, peer := "http://"+addrs[0], "http://"+addrs[1]
	cmd := exec.Command(path, "--data-dir", t.TempDir(), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("etcd: %s", log.String())
		}
	})
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addrs[0]}, DialTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, err := c.Get(ctx, "x"); err == nil {
			return addrs[0]
		} else if ctx.Err() != nil {
			t.Fatalf("etcd does not serve: %v", err)
		}
	}
}

// With etcd as the provider, members need not know one another. Who is killed is found when its
// lease ends, who leaves at once.
func TestEtcd(t *testing.T) {
	at := startEtcd(t)
	all := roles(t, 3)
	for i := range all {
		all[i].Health, all[i].Etcd = nil, at
	}
	m := startAll(t, all...)
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
