package pacluster

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/rdmactor/rdmactor/internal/plain"
)

// delivery delivers batches of pub/sub to the subscribers of this member. Proto.Actor's actor
// panics if a subscribed grain is not found, as while this member is suspended: it loses the rest
// of the batch, and stops for good if that happens more than ten times in ten seconds.
type delivery struct {
	*cluster.PubSubMemberDeliveryActor
	cluster *cluster.Cluster
}

// replaceDelivery puts delivery in the place of Proto.Actor's actor, before other members know this
// one.
func replaceDelivery(c *cluster.Cluster) error {
	sys := c.ActorSystem
	if err := sys.Root.StopFuture(sys.NewLocalPID(cluster.PubSubDeliveryName)).Wait(); err != nil {
		return err
	}
	_, err := sys.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor {
		return delivery{cluster.NewPubSubMemberDeliveryActor(c.Config.PubSubConfig.SubscriberTimeout, c.Logger()), c}
	}), cluster.PubSubDeliveryName)
	return err
}

// Receive implements actor.Actor.
func (d delivery) Receive(ctx actor.Context) {
	if batch, ok := ctx.Message().(*cluster.DeliverBatchRequest); ok {
		d.locateGrains(batch)
	}
	d.PubSubMemberDeliveryActor.Receive(ctx)
}

// locateGrains replaces the grains that have subscribed by their actors, and removes those that are
// not found.
func (d delivery) locateGrains(batch *cluster.DeliverBatchRequest) {
	var found []*cluster.SubscriberIdentity
	lost := 0
	for _, sub := range batch.Subscribers.Subscribers {
		if id := sub.GetClusterIdentity(); id != nil {
			pid := d.cluster.Get(id.Identity, id.Kind)
			if pid == nil {
				lost++
				continue
			}
			sub = &cluster.SubscriberIdentity{Identity: &cluster.SubscriberIdentity_Pid{Pid: pid}}
		}
		found = append(found, sub)
	}
	batch.Subscribers.Subscribers = found
	if lost > 0 {
		d.cluster.Logger().Warn("pacluster: a batch of pub/sub is for grains that are not found", "topic", plain.Quote(batch.Topic), "actors", lost)
	}
}
