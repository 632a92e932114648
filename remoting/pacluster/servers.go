package pacluster

import (
	"sync"

	"github.com/asynkron/protoactor-go/cluster"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
)

// Servers finds the cluster's members for rpc.NewPool, and follows their changes. address returns
// where a member's rpc server listens, from its host, kinds or id; "": it has none. It is called on
// any goroutine.
func (m *Member) Servers(address func(*cluster.Member) string) rpc.Resolver {
	return &servers{m, address}
}

type servers struct {
	member  *Member
	address func(*cluster.Member) string
}

// String names the cluster in errors.
func (s *servers) String() string { return s.member.Cluster.Config.Name }

func (s *servers) Watch(_ *rdma.Runtime, update func([]string, error)) func() {
	var mu sync.Mutex
	stopped, changed := false, false
	report := func(members cluster.Members) {
		var addrs []string
		for _, member := range members {
			if a := s.address(member); a != "" {
				addrs = append(addrs, a)
			}
		}
		update(addrs, nil)
	}
	stream := s.member.Cluster.ActorSystem.EventStream
	events := stream.Subscribe(func(ev any) {
		t, ok := ev.(*cluster.ClusterTopology)
		mu.Lock()
		defer mu.Unlock()
		if ok && !stopped {
			changed = true
			report(t.Members)
		}
	})
	present := s.member.governor.currentMembers()
	mu.Lock()
	defer mu.Unlock()
	if !changed {
		report(present)
	}
	return func() {
		stream.Unsubscribe(events)
		mu.Lock()
		defer mu.Unlock()
		stopped = true
	}
}
