package inbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// chaos delivers to names whose actors come, stop, are suspended and have successors of other
// kinds, and writes down what becomes of each message.
type chaos struct {
	*rig
	rng   *rand.Rand
	sent  int
	to    []string       // the target of each message
	lossy map[string]int // names whose actors may have dropped messages, and how often
	alive map[string]*target
	ever  []*target
	kinds []string
}

var chaosNames = []string{"a", "b", "c", "d"}

func (c *chaos) step() {
	name := chaosNames[c.rng.IntN(len(chaosNames))]
	a := c.alive[name]
	switch k := c.rng.IntN(20); {
	case k < 11:
		c.burst(name)
	case k < 13:
		c.Advance(time.Duration(c.rng.IntN(3000)) * time.Millisecond)
	case a == nil:
		kind := c.kinds[c.rng.IntN(len(c.kinds))]
		a = c.spawnTarget(name, homes[kind](c.Runtime())...)
		a.drops = kind != "on the loop" && kind != "off the loop"
		c.alive[name] = a
		c.ever = append(c.ever, a)
	case k < 15:
		a.suspend()
	case k < 18:
		a.resume()
	default:
		c.stop(name, a)
	}
}

func (c *chaos) burst(name string) {
	n, size := 1+c.rng.IntN(8), c.rng.IntN(3000)
	c.do(func(in *Inbox) {
		for range n {
			in.Deliver(actor.NewPID("", name), &note{c.sent}, size, nil)
			c.to = append(c.to, name)
			c.sent++
		}
	})
}

// stop ends an actor, immediately or in its turn. An actor with a mailbox of Proto.Actor's drops
// its waiting messages.
func (c *chaos) stop(name string, a *target) {
	if a.drops {
		c.lossy[name]++
	}
	if c.rng.IntN(2) == 0 {
		c.System().Root.Stop(a.pid)
	} else {
		c.do(func(in *Inbox) { in.Deliver(a.pid, &actor.PoisonPill{}, 1, nil) })
	}
	a.resume()
	c.Advance(time.Minute)
	if _, ok := c.System().ProcessRegistry.GetLocal(name); ok { // its PoisonPill was refused
		c.System().Root.Stop(a.pid)
		c.Wait()
	}
	delete(c.alive, name)
}

// judge checks that each message had one fate, and each actor its messages in order.
func (c *chaos) judge() {
	fates := make(map[int][]string)
	for _, a := range c.ever {
		got := a.notes()
		if !slices.IsSorted(got) {
			c.t.Errorf("out of order: %v", got)
		}
		for _, n := range got {
			fates[n] = append(fates[n], "received")
		}
	}
	for _, d := range c.deadLetters() {
		if m, ok := d.Message.(*note); ok {
			fates[m.n] = append(fates[m.n], "dead letter")
		}
	}
	for _, f := range c.refusals() {
		if m, ok := f.msg.(*note); ok {
			fates[m.n] = append(fates[m.n], fmt.Sprint(f.why))
		}
	}
	for n := range c.sent {
		if f := fates[n]; len(f) > 1 || len(f) == 0 && c.lossy[c.to[n]] == 0 {
			c.t.Errorf("message %d for %s: %v", n, c.to[n], f)
		}
	}
}

// Whatever targets do, and whenever the inbox is closed: each message has one fate, and an actor
// receives its messages in order.
func TestOneFateInOrder(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inRig(t, Config{Window: 8 << 10, Bytes: 40 << 10}, func(r *rig) {
				c := &chaos{rig: r, rng: rand.New(rand.NewPCG(seed, 1)), lossy: map[string]int{}, alive: map[string]*target{}}
				c.kinds = slices.Sorted(maps.Keys(homes))
				for range 150 {
					c.step()
					c.check()
				}
				if seed%3 == 0 {
					c.do(func(in *Inbox) { in.Close() })
				}
				for _, name := range chaosNames {
					if a := c.alive[name]; a != nil {
						a.resume()
					}
				}
				c.Advance(time.Minute)
				c.quiet()
				c.judge()
				c.do(func(in *Inbox) {
					for _, l := range in.order {
						if l.waiting.Len() > 0 {
							c.t.Errorf("%d messages still wait for %q", l.waiting.Len(), l.name)
						}
					}
					if n := len(in.answers.out); n > len(c.alive)*2 {
						c.t.Errorf("%d Touches are kept", n)
					}
				})
			})
		})
	}
}
