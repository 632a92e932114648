package pacluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// topicAt returns a topic that a member has.
func topicAt(c *child) string {
	c.t.Helper()
	for i := range 1000 {
		if topic := fmt.Sprint("topic", i); c.do("topic-at %s", topic) == c.role.Name {
			return topic
		}
	}
	c.t.Fatalf("%s has no topics", c.role.Name)
	return ""
}

// A member that delivers a batch, or that has a topic, names an actor of another member as a
// subscriber. Only one that its own process has subscribed, or that is exposed, gets it.
func TestHostileDelivery(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 2)...)
	victim, hostile := m[0], m[1]
	name := victim.role.Name
	here, there := topicAt(victim), topicAt(hostile)
	for _, id := range []string{"secret", "subscribed", "left", "exposed"} {
		victim.do("actor %s", id)
	}
	victim.do("expose exposed")
	for _, id := range []string{"subscribed", "left"} {
		if got := victim.do("subscribe-pid %s %s %s", there, name, id); got != "" {
			t.Fatal(got)
		}
	}
	victim.do("unsubscribe-pid %s %s left", there, name)

	hostile.do("deliver %s %s forged. %[1]s secret nonhost secret %[1]s left %[3]s gossip %[1]s subscribed %[1]s exposed", name, there, hostile.role.Name)
	for _, id := range []string{"subscribed", "exposed"} {
		victim.want(id+" got forged.", "the honest part arrives")
	}
	for _, id := range []string{"secret", "left"} {
		victim.want("refused "+id, "it may not be reached")
	}
	hostile.want("topic removes subscribers", "it reports them as not reachable")
	for _, addr := range []string{name, nonhost} {
		if got := hostile.do("subscribe-pid %s %s secret", here, addr); !strings.Contains(got, remoting.ErrDecode.Error()) {
			t.Errorf("asked to subscribe another member's actor at %s, a topic answers %q", addr, got)
		}
	}
	if got := hostile.do("subscribe-pid %s %s exposed", here, name); got != "" {
		t.Errorf("asked to subscribe another member's exposed actor, a topic answers %q", got)
	}
	if got := hostile.do("subscribe-pid %s %s secret", there, name); got != "" {
		t.Fatal(got)
	}
	hostile.do("publish %s published.", there)
	victim.want("subscribed got published.", "it has subscribed")
	victim.want("refused secret", "its own process has not subscribed it")
	hostile.want("topic removes subscribers", "it reports that one, too")
	victim.do("expose secret")
	hostile.do("publish %s again.", there)
	victim.want("subscribed got again.", "it has subscribed")
	hostile.do("publish %s here.", here)
	victim.want("exposed got here.", "another member has subscribed it")
	victim.never("secret got", "it was not subscribed by its own process")
	victim.never("left got", "it has unsubscribed")
	silent(m...)
}

// A member is killed that has a topic, and subscribers of another one. The survivors receive each
// message of the other topic once. The killed topic is made anew elsewhere, without its
// subscribers, which Proto.Actor has kept in that member's memory: an actor that subscribes again
// receives later messages.
func TestPubSubUnderKill(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 3)...)
	subscribe := func(topic string, who ...*child) {
		for _, c := range who {
			if got := c.do("subscribe %s", topic); got != "" {
				t.Fatal(got)
			}
		}
	}
	stays, killed := topicAt(m[0]), topicAt(m[2])
	subscribe(stays, m...)
	subscribe(killed, m...)
	m[2].Kill()
	left := m[:2]
	for i := range 10 { // while it is found out, and afterwards
		for _, from := range left {
			text := fmt.Sprintf("%d-from-%s.", i, from.role.Name)
			if got := from.do("publish %s %s", stays, text); got != "" {
				t.Fatal(got)
			}
			for _, c := range left {
				c.want("heard "+text, "its topic is where it was")
			}
		}
	}
	for _, c := range left {
		c.knows(left[0].role.Name, left[1].role.Name)
		c.until("", "publish %s lost.", killed)
	}
	subscribe(killed, left...)
	for _, from := range left {
		text := fmt.Sprintf("again-from-%s.", from.role.Name)
		from.until("", "publish %s %s", killed, text)
		for _, c := range left {
			c.want("heard "+text, "it has subscribed again")
		}
	}
	for _, c := range left {
		c.never("heard", "nothing is heard twice")
		c.never("expelled", "it has done nothing")
	}
	silent(left...)
}

// The subscriptions of stopped actors are forgotten, and so are unread denials.
func TestSubscriptionsBound(t *testing.T) {
	s := subscribed("a")
	for i := range 100 * sweepFrom {
		pid := actor.NewPID("a", fmt.Sprint("stopped", i))
		sub := &cluster.SubscriberIdentity{Identity: &cluster.SubscriberIdentity_Pid{Pid: pid}}
		s.add("topic", sub)
		s.filterSubscribers(&cluster.DeliverBatchRequest{Topic: "other", Subscribers: &cluster.Subscribers{Subscribers: []*cluster.SubscriberIdentity{sub}}})
	}
	if len(s.all) > sweepFrom || len(s.denials) != mostDenials {
		t.Errorf("%d subscriptions and %d denials are kept", len(s.all), len(s.denials))
	}
}

// deliverLost delivers batches for subscribers of which the first is a grain that is not found.
func (p *process) deliverLost(topic, batches string) (string, error) {
	pid := p.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			p.line("heard %s", m.Value)
		}
	}))
	if _, err := p.m.Cluster.SubscribeByPid(topic, pid); err != nil {
		return "", err
	}
	subscriber := &cluster.SubscriberIdentity{Identity: &cluster.SubscriberIdentity_Pid{Pid: pid}}
	lost := &cluster.SubscriberIdentity{Identity: &cluster.SubscriberIdentity_ClusterIdentity{ClusterIdentity: cluster.NewClusterIdentity("x", "no such kind")}}
	n, err := strconv.Atoi(batches)
	for i := range n {
		p.sys.Root.Send(p.sys.NewLocalPID(cluster.PubSubDeliveryName), &cluster.DeliverBatchRequest{
			Topic: topic, Subscribers: &cluster.Subscribers{Subscribers: []*cluster.SubscriberIdentity{lost, subscriber}},
			PubSubBatch: &cluster.PubSubBatch{Envelopes: []proto.Message{wrapperspb.String(fmt.Sprint(i, "."))}},
		})
	}
	return "", err
}

// A subscribed grain is not found, as while a member is suspended. The other subscribers receive
// each batch, and the member goes on delivering: Proto.Actor's own actor panics, loses the rest of
// the batch, and stops for good if that happens more than ten times in ten seconds.
func TestSubscriberNotFound(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 1)...)[0]
	if got := m.do("deliver-lost topic 20"); got != "" {
		t.Fatal(got)
	}
	for i := range 20 {
		m.want(fmt.Sprint("heard ", i, "."), "another one is not found")
	}
	if got := m.do("publish topic later."); got != "" {
		t.Fatal(got)
	}
	m.want("heard later.", "it goes on")
}
