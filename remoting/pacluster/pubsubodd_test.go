package pacluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// odd executes the commands of tests that look for the limits of pub/sub.
func (p *process) odd(c []string) (string, error) {
	switch c[0] {
	case "odd-topic": // which
		return p.oddTopic(c[1])
	case "dying": // topic, messages
		n, _ := strconv.Atoi(c[2])
		return p.dying(c[1], n)
	case "deliver-lost": // topic, batches: to a grain that is not found, and to one that subscribes
		return p.deliverLost(c[1], c[2])
	case "deliver-many": // address, topic, text, actors, id: to so many actors, and to that one
		n, _ := strconv.Atoi(c[4])
		var subscribers []string
		for i := range n {
			subscribers = append(subscribers, c[1], fmt.Sprint("x", i))
		}
		return p.deliver(c[1], c[2], c[3], append(subscribers, c[1], c[5]))
	}
	return "", fmt.Errorf("unknown command %q", c)
}

// oddTopics are names of topics that a program may make of what its users type.
var oddTopics = map[string]string{
	"empty": "", "64 KiB": strings.Repeat("t", 64<<10), "1 KiB": strings.Repeat("t", 1<<10), "NUL": "a\x00b", "slashes": "/a//b/", "dots": "../..",
	"star": "*", "dollar": "$pubsub-delivery", "not UTF-8": "a\xffb", "newline": "a\nb", "at": "x@y",
}

// oddTopic subscribes to a topic of an odd name and publishes a message. It reports whether that
// arrived, or the first error.
func (p *process) oddTopic(name string) (string, error) {
	topic, cl := oddTopics[strings.ReplaceAll(name, "_", " ")], p.m.Cluster
	heard := make(chan bool, 8)
	pid := p.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			heard <- true
		}
	}))
	if _, err := cl.SubscribeByPid(topic, pid, cluster.WithTimeout(2*time.Second)); err != nil {
		return "", err
	}
	if _, err := cl.Publisher().Publish(context.Background(), topic, wrapperspb.String("x"), cluster.WithTimeout(2*time.Second)); err != nil {
		return "", err
	}
	select {
	case <-heard:
		return "heard", nil
	case <-time.After(patience):
		return "", errors.New("it was published, and is not heard")
	}
}

// A topic may have any name that the wire carries: UTF-8, and with the activator's name at most
// 1 KiB. Another one has only subscribers and publishers on the member that has it; elsewhere
// subscribing times out. Neither harms other topics.
func TestOddTopics(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 2)...)
	for name := range oddTopics {
		for _, c := range m {
			got := c.do("odd-topic %s", strings.ReplaceAll(name, " ", "_"))
			t.Logf("%s: %s", name, got)
			local := name == "64 KiB" || name == "1 KiB" || name == "not UTF-8"
			if got != "heard" && (!local || !strings.Contains(got, context.DeadlineExceeded.Error())) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	for _, c := range m {
		if got := c.do("subscribe plain"); got != "" {
			t.Fatal(got)
		}
	}
	m[0].do("publish plain text.")
	for _, c := range m {
		c.want("heard text.", "its name is not odd")
	}
	silent(m...)
}

// dying publishes so many messages to subscribers that stop while they are published to, beside one
// that stays. It returns how many of the messages that one has heard.
func (p *process) dying(topic string, messages int) (string, error) {
	cl := p.m.Cluster
	var heard atomic.Int64
	stays := p.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			heard.Add(1)
		}
	}))
	if _, err := cl.SubscribeByPid(topic, stays); err != nil {
		return "", err
	}
	over := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				pid := p.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch ctx.Message().(type) {
					case *cluster.PubSubAutoRespondBatch, *wrapperspb.StringValue:
						ctx.Stop(ctx.Self())
					}
				}))
				_, _ = cl.SubscribeByPid(topic, pid)
				p.sys.Root.Stop(pid)
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	var err error
	for range messages {
		if _, bad := cl.Publisher().Publish(context.Background(), topic, wrapperspb.String("x")); bad != nil {
			err = bad
		}
	}
	close(over)
	all.Wait()
	for end := time.Now().Add(patience); heard.Load() < int64(messages) && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	return fmt.Sprint(heard.Load()), err
}

// Subscribers that stop while they are published to cost another one no message.
func TestDyingSubscribers(t *testing.T) {
	m := startAll(t, roles(t, 2)...)
	for i, c := range m { // of the one topic here, of the other there
		topic := topicAt(m[0])
		if got := c.do("dying %s-%d 300", topic, i); got != "300" {
			t.Errorf("%s: %s of 300", c.role.Name, got)
		}
	}
	silent(m...)
}

// A member has a batch delivered to 100,000 actors of another one that have not subscribed, and to
// one that has: that one receives it, and the other member's memory stays bounded.
func TestManyTargets(t *testing.T) {
	m := startAll(t, roles(t, 2)...)
	victim, hostile := m[0], m[1]
	topic := topicAt(hostile)
	victim.do("actor subscribed")
	if got := victim.do("subscribe-pid %s %s subscribed", topic, victim.role.Name); got != "" {
		t.Fatal(got)
	}
	before := victim.heap()
	for i := range 10 {
		hostile.do("deliver-many %s %s many%d. 100000 subscribed", victim.role.Name, topic, i)
		victim.want(fmt.Sprintf("subscribed got many%d.", i), "it has subscribed")
	}
	if grown := victim.heap() - before; grown > 32<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	for _, c := range m {
		c.do("publish %s after-%s.", topic, c.role.Name)
		victim.want("subscribed got after-"+c.role.Name+".", "it goes on")
	}
	silent(m...)
}
