package pacluster

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
)

// calls makes requests to grains as the cluster's own context does, with two differences. While a
// grain cannot be reached, because the member it was on is gone and the provider has not found
// that yet, a request is tried again until its time is over. And a failure on the way is an error,
// also where Proto.Actor knows only values.
//
// It notes the actors that are subscribed to topics.
type calls struct {
	cluster.Context
	halted        func() bool
	subscriptions *subscriptions
}

// patient are the options of a request that come before the caller's own.
var patient = []cluster.GrainCallOption{
	cluster.WithRetryCount(1 << 30), // the time bounds them
	cluster.WithRetryAction(func(n int) int {
		time.Sleep(min(time.Duration(n+1)*retryFirst, retryMost))
		return n + 1
	}),
}

const (
	retryFirst = 2 * time.Millisecond
	retryMost  = 20 * time.Millisecond
)

// Request implements cluster.Context. The requests that the cluster tries again were not received
// by an actor: a dead letter. A request with an unknown fate is not sent again.
func (c calls) Request(identity, kind string, message any, opts ...cluster.GrainCallOption) (any, error) {
	c.noteSubscription(identity, kind, message)
	res, err := c.Context.Request(identity, kind, message, append(patient[:len(patient):len(patient)], opts...)...)
	m, asked := message.(*cluster.UnsubscribeRequest)
	if _, ok := res.(*cluster.UnsubscribeResponse); ok && asked {
		c.subscriptions.remove(identity, m.Subscriber)
	}
	if err != nil {
		if c.halted() {
			err = fmt.Errorf("%w: %w", ErrSuspended, err)
		}
		return nil, err
	}
	if failed, ok := res.(error); ok {
		if _, own := res.(*cluster.GrainErrorResponse); !own { // generated code knows that one
			return nil, failed
		}
	}
	return res, nil
}

// RequestFuture implements cluster.Context.
func (c calls) RequestFuture(identity, kind string, message any, opts ...cluster.GrainCallOption) (actor.Future, error) {
	c.noteSubscription(identity, kind, message)
	return c.Context.RequestFuture(identity, kind, message, opts...)
}

// noteSubscription notes a subscription before the topic can publish to it.
func (c calls) noteSubscription(identity, kind string, message any) {
	if m, ok := message.(*cluster.SubscribeRequest); ok && kind == cluster.TopicActorKind {
		c.subscriptions.add(identity, m.Subscriber)
	}
}
