package pacluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"

	"github.com/rdmactor/rdmactor/codec"
)

// serialized is a codec that knows the messages which Proto.Actor has in two forms, such as the
// batches of pub/sub: remote.RootSerializable in a process, remote.RootSerialized on the wire. And
// it refuses those that Proto.Actor's own actors would panic at, because what such an actor has
// spawned stops when it is restarted.
type serialized struct {
	codec.Codec
	spawn  map[string]*actor.Props // the kinds that may be spawned
	kinds  []*cluster.Kind         // of grains that are here
	halted func() bool             // no grain may be here

	subscriptions *subscriptions
	gossip        *gossipLimit
}

// Append implements codec.Codec.
func (s serialized) Append(dst []byte, msg any) (name string, out []byte, err error) {
	if m, ok := msg.(remote.RootSerializable); ok {
		if msg, err = recoverPanic(func() (any, error) { return m.Serialize() }); err != nil {
			return "", dst, fmt.Errorf("serialize a %T: %w", m, err)
		}
	}
	return s.Codec.Append(dst, msg)
}

// Decode implements codec.Codec.
func (s serialized) Decode(name string, body []byte) (any, error) {
	msg, err := s.Codec.Decode(name, body)
	if err != nil {
		return nil, err
	}
	if m, ok := msg.(remote.RootSerialized); ok {
		if msg, err = recoverPanic(func() (any, error) { return m.Deserialize() }); err != nil {
			return nil, fmt.Errorf("deserialize a %q: %w", name, err)
		}
	}
	if err := s.checkMessage(msg); err != nil {
		return nil, fmt.Errorf("a %q: %w", name, err)
	}
	return msg, nil
}

// recoverPanic calls do, and returns its panic as an error.
func recoverPanic(do func() (any, error)) (msg any, err error) {
	defer func() {
		if v := recover(); v != nil {
			msg, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	return do()
}

var errMissing = errors.New("something that Proto.Actor relies on is missing")

// checkMessage refuses messages that no member sends, or at which an actor of Proto.Actor would
// panic.
func (s serialized) checkMessage(msg any) error {
	ok := true
	switch m := msg.(type) {
	case *cluster.ClusterTopology: // it is each member's own
		return errors.New("no member sends that")
	case *remote.ActorPidRequest:
		if _, known := s.spawn[m.Kind]; !known {
			return fmt.Errorf("the kind %q cannot be spawned here", m.Kind)
		}
	case *cluster.PubSubBatch:
		return s.checkBatch(m.Envelopes)
	case *cluster.PubSubAutoRespondBatch: // an actor gets each of them
		return s.checkBatch(m.Envelopes)
	case *cluster.DeliverBatchRequest:
		if err := s.checkBatch(m.PubSubBatch.Envelopes); err != nil {
			return err
		}
		if ok = m.Subscribers != nil && !slices.ContainsFunc(m.Subscribers.Subscribers, s.isElsewhere); ok {
			s.subscriptions.filterSubscribers(m)
		}
	case *cluster.ActivationRequest:
		if s.halted() {
			return ErrSuspended
		}
		ok = m.ClusterIdentity != nil
	case *cluster.GossipRequest:
		if m.State == nil {
			return errMissing
		}
		return s.checkGossip(m.State)
	case *cluster.GossipResponse:
		return s.checkGossip(m.State)
	case *cluster.SubscribeRequest:
		if s.subscriptions.isLocal(m.Subscriber) && !s.subscriptions.exposes(m.Subscriber.GetPid().Id) {
			return errSubscribes
		}
		ok = namesSubscriber(m.Subscriber)
	case *cluster.UnsubscribeRequest:
		ok = namesSubscriber(m.Subscriber)
	}
	if !ok {
		return errMissing
	}
	return nil
}

// checkBatch refuses a batch in which one would stop who subscribes, or would be refused if it came
// alone: any actor can be named as a subscriber, also those of Proto.Actor's.
func (s serialized) checkBatch(batch []proto.Message) error {
	for _, m := range batch {
		switch m := any(m).(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
			return fmt.Errorf("a %T cannot be published", m)
		}
		if err := s.checkMessage(m); err != nil {
			return fmt.Errorf("a %T in a batch: %w", m, err)
		}
	}
	return nil
}

// isElsewhere reports whether a subscriber is a grain of a kind that this member does not have.
// Topics deliver to the members that have the grains.
func (s serialized) isElsewhere(sub *cluster.SubscriberIdentity) bool {
	id := sub.GetClusterIdentity()
	return id != nil && id.Kind != cluster.TopicActorKind &&
		!slices.ContainsFunc(s.kinds, func(k *cluster.Kind) bool { return k.Kind == id.Kind })
}

var errSubscribes = errors.New("only its own member subscribes an actor that is not exposed")

// namesSubscriber reports whether s names a subscriber.
func namesSubscriber(s *cluster.SubscriberIdentity) bool {
	return s.GetPid() != nil || s.GetClusterIdentity() != nil
}
