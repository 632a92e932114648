package pacluster

import (
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/codec"
)

var batches = serialized{
	Codec: codec.New(), halted: unhalted, subscriptions: subscribed("a", subscription{"topic", "b"}), gossip: limited(),
}

// subscribed returns the subscriptions of a member.
func subscribed(name string, all ...subscription) *subscriptions {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	sys.ProcessRegistry.Address = name
	s := newSubscriptions(sys, func(string) bool { return false })
	for _, is := range all {
		s.add(is.topic, &cluster.SubscriberIdentity{Identity: &cluster.SubscriberIdentity_Pid{Pid: actor.NewPID(name, is.id)}})
	}
	return s
}

// The batches of pub/sub are messages that Proto.Actor has in another form on the wire.
func TestBatches(t *testing.T) {
	texts := []proto.Message{wrapperspb.String("one"), wrapperspb.Int64(2)}
	for _, msg := range []any{
		&cluster.PubSubBatch{Envelopes: texts},
		&cluster.PubSubAutoRespondBatch{Envelopes: texts},
		&cluster.DeliverBatchRequest{
			Subscribers: &cluster.Subscribers{Subscribers: []*cluster.SubscriberIdentity{
				{Identity: &cluster.SubscriberIdentity_Pid{Pid: actor.NewPID("a", "b")}},
			}},
			PubSubBatch: &cluster.PubSubBatch{Envelopes: texts}, Topic: "topic",
		},
	} {
		name, b, err := batches.Append([]byte("x"), msg)
		if err != nil {
			t.Fatalf("%T: %v", msg, err)
		}
		got, err := batches.Decode(name, b[1:])
		if err != nil {
			t.Fatalf("%T: %v", msg, err)
		}
		switch got := got.(type) {
		case *cluster.PubSubBatch:
			sameTexts(t, got.Envelopes, texts)
		case *cluster.PubSubAutoRespondBatch:
			sameTexts(t, got.Envelopes, texts)
		case *cluster.DeliverBatchRequest:
			sameTexts(t, got.PubSubBatch.Envelopes, texts)
			if got.Topic != "topic" || got.Subscribers.Subscribers[0].GetPid().Id != "b" {
				t.Errorf("%+v", got)
			}
		default:
			t.Errorf("a %T comes as a %T", msg, got)
		}
	}
}

func sameTexts(t *testing.T, got, want []proto.Message) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range got {
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
}

// Messages at which Proto.Actor's actors would panic are refused: invented indexes, and missing
// parts.
func TestHostileMessages(t *testing.T) {
	gossip := &cluster.GossipState{Members: map[string]*cluster.GossipMemberState{"x": {}}}
	topology, err := anypb.New(&cluster.ClusterTopology{Blocked: []string{"y"}})
	if err != nil {
		t.Fatal(err)
	}
	blocks := &cluster.GossipState{Members: map[string]*cluster.GossipMemberState{"x": {Values: map[string]*cluster.GossipKeyValue{
		cluster.TopologyKey: {Value: topology},
	}}}}
	for what, msg := range map[string]proto.Message{
		"a type that is not in the list": &cluster.PubSubBatchTransport{Envelopes: []*cluster.PubSubEnvelope{{TypeId: 7}}},
		"a negative one":                 &cluster.PubSubBatchTransport{Envelopes: []*cluster.PubSubEnvelope{{TypeId: -1}}},
		"a type that nobody knows":       &cluster.PubSubBatchTransport{TypeNames: []string{"x"}, Envelopes: []*cluster.PubSubEnvelope{{}}},
		"a serializer that is not there": &cluster.PubSubBatchTransport{TypeNames: []string{"x"}, Envelopes: []*cluster.PubSubEnvelope{{SerializerId: 99}}},
		"no batch":                       &cluster.DeliverBatchRequestTransport{Topic: "x"},
		"no subscribers":                 &cluster.DeliverBatchRequestTransport{Batch: &cluster.PubSubBatchTransport{}},
		"nobody who subscribes":          &cluster.SubscribeRequest{Subscriber: &cluster.SubscriberIdentity{}},
		"another member's actor": &cluster.SubscribeRequest{Subscriber: &cluster.SubscriberIdentity{
			Identity: &cluster.SubscriberIdentity_Pid{Pid: actor.NewPID("a", "b")},
		}},
		"this member's actor by the address that it had before it started": &cluster.SubscribeRequest{Subscriber: &cluster.SubscriberIdentity{
			Identity: &cluster.SubscriberIdentity_Pid{Pid: actor.NewPID("nonhost", "b")},
		}},
		"nobody who unsubscribes":     &cluster.UnsubscribeRequest{},
		"no grain":                    &cluster.ActivationRequest{},
		"no state":                    &cluster.GossipRequest{},
		"a member without state":      &cluster.GossipRequest{State: gossip},
		"the same in an answer":       &cluster.GossipResponse{State: gossip},
		"gossip that blocks a member": &cluster.GossipRequest{State: blocks},
		"the same as an answer":       &cluster.GossipResponse{State: blocks},
		"another member's topology":   &cluster.ClusterTopology{},
		"a stop in a batch": &cluster.PubSubBatchTransport{
			TypeNames: []string{"actor.PoisonPill"}, Envelopes: []*cluster.PubSubEnvelope{{}},
		},
		"a stop in a delivery": &cluster.DeliverBatchRequestTransport{
			Subscribers: &cluster.Subscribers{},
			Batch:       &cluster.PubSubBatchTransport{TypeNames: []string{"actor.Terminated"}, Envelopes: []*cluster.PubSubEnvelope{{}}},
		},
		"a delivery to a grain of a kind that is not here": &cluster.DeliverBatchRequestTransport{
			Subscribers: &cluster.Subscribers{Subscribers: []*cluster.SubscriberIdentity{
				{Identity: &cluster.SubscriberIdentity_ClusterIdentity{ClusterIdentity: cluster.NewClusterIdentity("x", "x")}},
			}},
			Batch: &cluster.PubSubBatchTransport{},
		},
		"an unknown kind": &remote.ActorPidRequest{Kind: "x"},
		"no protobuf message": &cluster.PubSubBatchTransport{
			TypeNames: []string{"x"}, Envelopes: []*cluster.PubSubEnvelope{{SerializerId: 1, MessageData: []byte(`{}`)}},
		},
	} {
		b, err := proto.Marshal(msg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := batches.Decode(string(proto.MessageName(msg)), b); err == nil {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// A message that is refused alone is refused in a batch, too: Proto.Actor passes each message of a
// batch to its target, and any actor may be named as a subscriber.
func TestHostileBatches(t *testing.T) {
	gossip := func(key string, value proto.Message) *cluster.GossipRequest {
		a, err := anypb.New(value)
		if err != nil {
			t.Fatal(err)
		}
		return &cluster.GossipRequest{State: &cluster.GossipState{Members: map[string]*cluster.GossipMemberState{
			"x": {Values: map[string]*cluster.GossipKeyValue{key: {Value: a}}},
		}}}
	}
	in := func(m proto.Message) []any {
		list := []proto.Message{m}
		return []any{
			&cluster.PubSubBatch{Envelopes: list}, &cluster.PubSubAutoRespondBatch{Envelopes: list},
			&cluster.DeliverBatchRequest{Subscribers: &cluster.Subscribers{}, PubSubBatch: &cluster.PubSubBatch{Envelopes: list}},
		}
	}
	decode := func(batch any) (any, error) {
		name, b, err := batches.Append(nil, batch)
		if err != nil {
			t.Fatal(err)
		}
		return batches.Decode(name, b)
	}
	for _, m := range []proto.Message{
		&cluster.ClusterTopology{}, gossip(cluster.TopologyKey, &cluster.ClusterTopology{Blocked: []string{"y"}}), &cluster.ActivationRequest{},
	} {
		for _, batch := range in(m) {
			if _, err := decode(batch); err == nil {
				t.Errorf("a %T with %v is accepted", batch, m)
			}
		}
	}
	for _, batch := range in(gossip(cluster.GracefullyLeftKey, wrapperspb.String(""))) {
		got, err := decode(batch)
		if err != nil {
			t.Fatal(err)
		}
		var list []proto.Message
		switch m := got.(type) {
		case *cluster.PubSubBatch:
			list = m.Envelopes
		case *cluster.PubSubAutoRespondBatch:
			list = m.Envelopes
		case *cluster.DeliverBatchRequest:
			list = m.PubSubBatch.Envelopes
		}
		for _, m := range list {
			if g := m.(*cluster.GossipRequest); len(g.State.Members["x"].GetValues()) > 0 {
				t.Errorf("in a %T a member has left by gossip", batch)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"cluster.PubSubBatchTransport", "cluster.DeliverBatchRequestTransport", "cluster.PubSubAutoRespondBatchTransport"} {
		f.Add(name, []byte{})
		f.Add(name, []byte{0x12, 0x02, 0x08, 0x07})
	}
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		msg, err := batches.Decode(name, body)
		if err != nil {
			return
		}
		name, again, err := batches.Append(nil, msg)
		if err != nil {
			return // its type is unknown here
		}
		if _, err := batches.Decode(name, again); err != nil {
			t.Errorf("%s is encoded again, and then cannot be decoded: %v", name, err)
		}
	})
}
