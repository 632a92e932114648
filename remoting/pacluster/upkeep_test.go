package pacluster

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"

	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
)

// Messages by which Proto.Actor keeps a cluster running do not count when a member leaves. Those
// that carry an application's do.
func TestUpkeep(t *testing.T) {
	for want, list := range map[bool][]proto.Message{
		true: {
			&cluster.GossipRequest{}, &cluster.GossipResponse{}, &actor.Touch{}, &actor.Touched{},
			&cluster.ActivationRequest{}, &cluster.ActivationResponse{}, &cluster.ActivationTerminated{},
			&cluster.NotifyAboutFailingSubscribersRequest{}, &cluster.NotifyAboutFailingSubscribersResponse{},
		},
		false: {
			&cluster.GrainRequest{}, &cluster.GrainResponse{}, &cluster.PubSubBatchTransport{}, &cluster.DeliverBatchRequestTransport{},
			&cluster.PublishResponse{}, &cluster.SubscribeRequest{}, &actor.PoisonPill{}, &actor.DeadLetterResponse{},
		},
	} {
		for _, m := range list {
			if name := string(proto.MessageName(m)); outbox.IsUpkeep(name) != want {
				t.Errorf("%s: %v", name, !want)
			}
		}
	}
}
