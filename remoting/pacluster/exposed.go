package pacluster

import (
	"slices"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"

	"github.com/rdmactor/rdmactor/remoting"
)

// The names of Proto.Actor's own actors that it has no constants for.
const (
	eventStream = "eventstream" // MemberList.BroadcastEvent publishes there
	activator   = "activator"   // remote.SpawnNamed asks it
)

// memberExpose returns the rules that members need of one another.
//
// Grains are the children of the activator of their partition, and are found by asking it. Actors
// of remote.SpawnNamed are children of the activator, and their spawner may stop them. Topics are
// grains. Subscribers are on the same member as the actor that delivers to them. The sender of a
// message can be answered, so futures need no rule.
func memberExpose(id string, spawns bool) remoting.Expose {
	e := remoting.Expose{
		Reach: []string{
			cluster.DefaultGossipActorName,
			disthash.PartitionActivatorActorName,
			disthash.PartitionActivatorActorName + "/*",
			cluster.PubSubDeliveryName,
			eventStream,
			presenceName(id),
		},
		Watch: []string{disthash.PartitionActivatorActorName + "/*"},
	}
	if spawns {
		e.Reach = append(e.Reach, activator, activator+"/*")
		e.Watch = append(e.Watch, activator+"/*")
		e.Stop = []string{activator + "/*"}
	}
	return e
}

// mergeExpose returns the rules of both.
func mergeExpose(a, b remoting.Expose) remoting.Expose {
	return remoting.Expose{
		Reach: slices.Concat(a.Reach, b.Reach), Watch: slices.Concat(a.Watch, b.Watch),
		Stop: slices.Concat(a.Stop, b.Stop), Spawn: slices.Concat(a.Spawn, b.Spawn),
	}
}
