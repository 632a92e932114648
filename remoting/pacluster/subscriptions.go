package pacluster

import (
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting"
)

// Proto.Actor delivers a topic's batch to the actors that the topic's member names, whichever they
// are. So each member notes which of its actors it has subscribed to which topics, and removes the
// others from the batches that arrive.

const (
	// sweepFrom is the number of subscriptions from which those of stopped actors are looked for,
	// each time there are twice as many as before.
	sweepFrom = 64
	// mostDenied is how many subscribers are reported for one batch, and mostDenials for how many
	// batches at a time. Others are reported when they are named again.
	mostDenied, mostDenials = 128, 16
)

// subscription describes a local actor that receives the messages of a topic.
type subscription struct{ topic, id string }

// subscriptions contains the subscriptions of this process.
type subscriptions struct {
	registry *actor.ProcessRegistryValue
	exposes  func(id string) bool // every member may send to that actor
	denials  chan denial

	mu      sync.Mutex
	all     map[subscription]bool
	sweepAt int
}

// denial lists subscribers that were removed from a batch.
type denial struct {
	topic       string
	subscribers []*cluster.SubscriberIdentity
}

func newSubscriptions(sys *actor.ActorSystem, exposes func(id string) bool) *subscriptions {
	return &subscriptions{
		registry: sys.ProcessRegistry, exposes: exposes, denials: make(chan denial, mostDenials),
		all: make(map[subscription]bool), sweepAt: sweepFrom,
	}
}

// nonhost is the address that Proto.Actor takes for this process's, besides its own.
const nonhost = "nonhost"

// isLocal reports whether a subscriber is an actor of this member.
func (s *subscriptions) isLocal(sub *cluster.SubscriberIdentity) bool {
	pid := sub.GetPid()
	return pid != nil && (pid.Address == s.registry.Address || pid.Address == nonhost)
}

// add notes that this process asks a topic to add a subscriber.
func (s *subscriptions) add(topic string, sub *cluster.SubscriberIdentity) {
	if !s.isLocal(sub) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[subscription{topic, sub.GetPid().Id}] = true
	if len(s.all) < s.sweepAt {
		return
	}
	for is := range s.all {
		if _, ok := s.registry.GetLocal(is.id); !ok {
			delete(s.all, is)
		}
	}
	s.sweepAt = max(2*len(s.all), sweepFrom)
}

// remove notes that a topic has removed a subscriber.
func (s *subscriptions) remove(topic string, sub *cluster.SubscriberIdentity) {
	if s.isLocal(sub) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, subscription{topic, sub.GetPid().Id})
	}
}

// mayReach reports whether another member may have a topic's batch delivered to a subscriber.
// Grains are exposed.
func (s *subscriptions) mayReach(topic string, sub *cluster.SubscriberIdentity) bool {
	if sub.GetPid() == nil {
		return true
	}
	if !s.isLocal(sub) {
		return false
	}
	id := sub.GetPid().Id
	s.mu.Lock()
	ok := s.all[subscription{topic, id}]
	s.mu.Unlock()
	return ok || s.exposes(id)
}

// filterSubscribers removes the subscribers of a batch from another member that it may not reach.
func (s *subscriptions) filterSubscribers(m *cluster.DeliverBatchRequest) {
	var allowed, denied []*cluster.SubscriberIdentity
	for _, sub := range m.Subscribers.Subscribers {
		switch {
		case s.mayReach(m.Topic, sub):
			allowed = append(allowed, sub)
		case s.isLocal(sub) && len(denied) < mostDenied: // no topic names others here
			denied = append(denied, sub)
		}
	}
	m.Subscribers.Subscribers = allowed
	if len(denied) == 0 {
		return
	}
	select {
	case s.denials <- denial{m.Topic, denied}:
	default:
	}
}

// reportDenials reports subscribers that were removed from batches, until the member is shut down:
// here as refused, and to their topic as no longer reachable, so that it removes them.
func (m *Member) reportDenials() {
	for {
		select {
		case d := <-m.subscriptions.denials:
			m.reportDenial(d)
		case <-m.leaving:
			return
		}
	}
}

func (m *Member) reportDenial(d denial) {
	m.sys.Logger().Warn("pacluster: a batch of pub/sub is for actors that are neither subscribed here nor exposed",
		"topic", plain.Quote(d.topic), "target", plain.Quote(d.subscribers[0].GetPid().Id), "actors", len(d.subscribers))
	no := &cluster.NotifyAboutFailingSubscribersRequest{}
	for _, sub := range d.subscribers {
		no.InvalidDeliveries = append(no.InvalidDeliveries,
			&cluster.SubscriberDeliveryReport{Subscriber: sub, Status: cluster.DeliveryStatus_SubscriberNoLongerReachable})
		err := fmt.Errorf("it has not subscribed to %s: %w", plain.Quote(d.topic), remoting.ErrDenied)
		m.publishGuarded(func() {
			m.sys.EventStream.Publish(&remoting.Refused{Target: sub.GetPid(), By: m.sys.Address(), Err: err})
		})
	}
	_, _ = m.Cluster.Request(d.topic, cluster.TopicActorKind, no) // as Proto.Actor's delivery does
}
