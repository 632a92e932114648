package pacluster

import (
	"fmt"
	"testing"
)

// A member is killed that has a topic, and subscribers of another one. Who is left hears once each
// what is published in the other one. The killed topic is made anew elsewhere, without its
// subscribers, which Proto.Actor has kept in that member's memory: whoever subscribes again hears
// what is published then.
func TestPubSubUnderKill(t *testing.T) {
	m := startAll(t, roles(t, 3)...)
	topicAt := func(c *child) string {
		for i := range 1000 {
			if topic := fmt.Sprint("topic", i); m[0].do("topic-at %s", topic) == c.role.Name {
				return topic
			}
		}
		t.Fatalf("%s has no topics", c.role.Name)
		return ""
	}
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
