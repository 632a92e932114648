package pacluster

import (
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/asynkron/protoactor-go/extensions"
	"github.com/asynkron/protoactor-go/remote"
)

// observed is a provider whose lists of members go to the rules. A provider gives each list to the
// cluster's MemberList, which permanently blocks members that are missing there. So it gets a
// cluster with a separate MemberList, which only publishes the lists.
type observed struct {
	cluster.ClusterProvider
	rules *governor
}

// StartMember implements cluster.ClusterProvider.
func (o observed) StartMember(c *cluster.Cluster) error {
	if err := replaceDelivery(c); err != nil {
		return err
	}
	if err := o.ClusterProvider.StartMember(o.clusterFor(c)); err != nil {
		return err
	}
	o.rules.startFollowing(c)
	return nil
}

// StartClient implements cluster.ClusterProvider.
func (o observed) StartClient(c *cluster.Cluster) error {
	if err := o.ClusterProvider.StartClient(o.clusterFor(c)); err != nil {
		return err
	}
	o.rules.startFollowing(c)
	return nil
}

// clusterFor returns a copy of c with a MemberList that blocks no member in c.
func (o observed) clusterFor(c *cluster.Cluster) *cluster.Cluster {
	sys := *c.ActorSystem
	sys.EventStream, sys.Extensions = eventstream.NewEventStream(), extensions.NewExtensions()
	settings := *sys.Config
	settings.MetricsEnabled = false
	sys.Config = &settings
	apart := &cluster.Cluster{ActorSystem: &sys, Config: &cluster.Config{
		MemberStrategyBuilder: func(*cluster.Cluster, string) cluster.MemberStrategy { return nil },
	}}
	forget := func() { apart.Remote = remote.NewRemote(&sys, &remote.Config{}) }
	forget()
	sys.EventStream.Subscribe(func(ev any) {
		if t, ok := ev.(*cluster.ClusterTopology); ok {
			forget() // whom it has blocked: a member may be listed again
			o.rules.handleListed(t.Members)
		}
	})
	copied := *c
	copied.MemberList = cluster.NewMemberList(apart)
	return &copied
}
