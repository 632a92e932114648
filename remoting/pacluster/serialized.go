package pacluster

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"

	"github.com/rdmactor/rdmactor/codec"
)

// serialized is a codec that knows the messages which Proto.Actor has in two forms, such as the
// batches of pub/sub: remote.RootSerializable in a process, remote.RootSerialized on the wire. And
// it refuses those that Proto.Actor's own actors would panic at, because what such an actor has
// spawned stops when it is restarted.
type serialized struct {
	codec.Codec
	spawn map[string]*actor.Props // the kinds that may be spawned
}

// Append implements codec.Codec.
func (s serialized) Append(dst []byte, msg any) (name string, out []byte, err error) {
	if m, ok := msg.(remote.RootSerializable); ok {
		if msg, err = guard(func() (any, error) { return m.Serialize() }); err != nil {
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
		if msg, err = guard(func() (any, error) { return m.Deserialize() }); err != nil {
			return nil, fmt.Errorf("deserialize a %q: %w", name, err)
		}
	}
	if err := s.check(msg); err != nil {
		return nil, fmt.Errorf("a %q: %w", name, err)
	}
	return msg, nil
}

// guard makes an error of a panic: Proto.Actor believes the indexes that a peer has sent.
func guard(do func() (any, error)) (msg any, err error) {
	defer func() {
		if v := recover(); v != nil {
			msg, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	return do()
}

var errMissing = errors.New("something that Proto.Actor relies on is missing")

// check refuses what no member sends, and what an actor of Proto.Actor would panic at.
func (s serialized) check(msg any) error {
	ok := true
	switch m := msg.(type) {
	case *cluster.ClusterTopology: // it is each member's own
		return errors.New("no member sends that")
	case *remote.ActorPidRequest:
		if _, known := s.spawn[m.Kind]; !known {
			return fmt.Errorf("the kind %q cannot be spawned here", m.Kind)
		}
	case *cluster.ActivationRequest:
		ok = m.ClusterIdentity != nil
	case *cluster.GossipRequest:
		ok = m.State != nil
	case *cluster.DeliverBatchRequest:
		ok = m.Subscribers != nil
	case *cluster.SubscribeRequest:
		ok = somebody(m.Subscriber)
	case *cluster.UnsubscribeRequest:
		ok = somebody(m.Subscriber)
	}
	if !ok {
		return errMissing
	}
	return nil
}

// somebody reports whether a subscriber is named at all.
func somebody(s *cluster.SubscriberIdentity) bool {
	return s.GetPid() != nil || s.GetClusterIdentity() != nil
}
