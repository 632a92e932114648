package pacluster

import (
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
)

// A pool's servers are the members that have an address, and change with the cluster.
func TestServers(t *testing.T) {
	rt := open(t)
	sys := rt.System()
	m := &Member{governor: &governor{}, Cluster: cluster.New(sys, cluster.Configure("shop", failing{}, disthash.New(), remote.Configure("127.0.0.1", 0)))}
	has := func(hosts ...string) {
		members := cluster.Members{{Id: "front", Host: "10.0.0.9", Kinds: []string{"front"}}}
		for _, h := range hosts {
			members = append(members, &cluster.Member{Id: h, Host: h, Kinds: []string{"orders"}})
		}
		sys.EventStream.Publish(&cluster.ClusterTopology{Members: members})
	}
	var updates [][]string
	r := m.Servers(func(m *cluster.Member) string {
		if !m.HasKind("orders") {
			return ""
		}
		return m.Host + ":9000"
	})
	stop := r.Watch(rt, func(addrs []string, err error) {
		updates = append(updates, addrs)
		if err != nil {
			t.Error(err)
		}
	})
	has("10.0.0.1")
	has("10.0.0.1", "10.0.0.2")
	stop()
	has("10.0.0.2")
	want := [][]string{nil, {"10.0.0.1:9000"}, {"10.0.0.1:9000", "10.0.0.2:9000"}}
	if !slices.EqualFunc(updates, want, slices.Equal) {
		t.Errorf("got %v, want %v", updates, want)
	}
}
