package mailbox

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/rdmactor/rdmactor/eventloop"
)

// carrying returns a Carrier that counts how often it was consumed.
func carrying(msg any) (c *Carrier, consumed *atomic.Int32) {
	consumed = new(atomic.Int32)
	return &Carrier{Message: msg, Consumed: func() { consumed.Add(1) }}, consumed
}

// settled waits until n is 1, and fails if it becomes more.
func settled(t *testing.T, why string, n *atomic.Int32) {
	t.Helper()
	for n.Load() == 0 {
		runtime.Gosched()
	}
	if n := n.Load(); n != 1 {
		t.Errorf("%s: consumed %d times, want once", why, n)
	}
}

// seen is an actor's view of a message.
type seen struct {
	Message any
	Sender  string
	Header  string
}

// A carried message is received as if it had been sent: the message, its sender and its headers.
func TestCarriedIsReceivedBare(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		got := make(chan seen, 3)
		middleware := func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(ctx actor.ReceiverContext, env *actor.MessageEnvelope) {
				if _, ok := env.Message.(*Carrier); ok {
					t.Error("the middleware has seen the carrier")
				}
				next(ctx, env)
			}
		}
		pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(data); ok {
				s := seen{Message: ctx.Message()}
				if ctx.Sender() != nil {
					s.Sender = ctx.Sender().Id
				}
				if h := ctx.MessageHeader(); h != nil {
					s.Header = h.Get("k")
				}
				got <- s
			}
		}, home, actor.WithReceiverMiddleware(middleware)))
		m := r.registry.Find(pid)
		env := &actor.MessageEnvelope{Message: data{2}, Sender: actor.NewPID("there", "who")}
		env.SetHeader("k", "v")
		bare, bareConsumed := carrying(data{1})
		enveloped, envelopedConsumed := carrying(env)
		m.Carry(bare)
		m.Carry(enveloped)
		r.sys.Root.Send(pid, data{3})
		for _, want := range []seen{{Message: data{1}}, {data{2}, "who", "v"}, {Message: data{3}}} {
			if diff := cmp.Diff(want, <-got, cmp.AllowUnexported(data{})); diff != "" {
				t.Errorf("the actor was shown (-want +got):\n%s", diff)
			}
		}
		settled(t, "bare", bareConsumed)
		settled(t, "in an envelope", envelopedConsumed)
		stop(t, r.sys, pid)
	})
}

// A message counts as consumed when Receive has ended, whichever way, and not before.
func TestCarriedIsConsumedWhenReceiveHasEnded(t *testing.T) {
	for name, end := range map[string]func(){
		"returns": func() {},
		"panics":  func() { panic("as the test wants") },
	} {
		t.Run(name, func(t *testing.T) {
			inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
				c, consumed := carrying(&data{1})
				pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*data); ok {
						if n := consumed.Load(); n != 0 {
							t.Errorf("consumed %d times in the middle of Receive", n)
						}
						end()
					}
				}, home))
				r.registry.Find(pid).Carry(c)
				settled(t, name, consumed)
				stop(t, r.sys, pid)
			})
		})
	}
}

// Who forwards a message has consumed it; the next receiver's time does not count.
func TestCarriedIsForwardedBare(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		second := newInbox(r.sys)
		first := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*data); ok {
				ctx.Forward(second.pid)
			}
		}, home))
		c, consumed := carrying(&data{7})
		r.registry.Find(first).Carry(c)
		if got := second.wait(1); *got[0].(*data) != (data{7}) {
			t.Errorf("forwarded %T %v", got[0], got[0])
		}
		settled(t, "forwarded", consumed)
		stop(t, r.sys, first, second.pid)
	})
}

// A carried message that the actor does not receive is answered as it was carried, and consumed.
func TestCarriedIsAnsweredWhenTheActorStops(t *testing.T) {
	inBothHomes(t, func(t *testing.T, r *rig, home actor.PropsOption) {
		sender := newInbox(r.sys)
		pid, release := held(r, home, func(ctx actor.Context) {
			if _, ok := ctx.Message().(*data); ok {
				t.Error("received after Stop")
			}
		})
		m := r.registry.Find(pid)
		before, beforeConsumed := carrying(&actor.MessageEnvelope{Message: &data{1}, Sender: sender.pid})
		pill, pillConsumed := carrying(&actor.PoisonPill{})
		m.Carry(before)
		m.Carry(pill)
		stopped := r.sys.Root.StopFuture(pid)
		release()
		if err := stopped.Wait(); err != nil {
			t.Fatal(err)
		}
		late, lateConsumed := carrying(&actor.MessageEnvelope{Message: &data{2}, Sender: sender.pid})
		m.Carry(late)
		for _, msg := range sender.wait(2) {
			if _, ok := msg.(*actor.DeadLetterResponse); !ok {
				t.Errorf("the sender got %T", msg)
			}
		}
		settled(t, "what waited", beforeConsumed)
		settled(t, "the PoisonPill", pillConsumed)
		settled(t, "what came late", lateConsumed)
		stop(t, r.sys, sender.pid)
	})
}

// A PoisonPill stops the actor in its turn. Without a message there is nothing to receive, and
// nothing to answer; an envelope of nothing is a dead letter.
func TestCarriedPoisonPillAndNil(t *testing.T) {
	r := newRig(t, 1)
	var dead []any
	s := r.sys.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok {
			dead = append(dead, d.Message)
		}
	})
	defer r.sys.EventStream.Unsubscribe(s)
	received := 0
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*data); ok {
			received++
		}
	}, r.OnLoop()))
	m := r.registry.Find(pid)
	var all []*atomic.Int32
	last := &data{}
	for _, msg := range []any{&data{}, nil, &actor.MessageEnvelope{}, &data{}, &actor.PoisonPill{}, last, nil} {
		c, consumed := carrying(msg)
		all = append(all, consumed)
		m.Carry(c)
	}
	for i, n := range all {
		settled(t, []string{"data", "nil", "an envelope of nil", "data", "PoisonPill", "behind it", "nil"}[i], n)
	}
	unboxed(r, pid)
	if diff := cmp.Diff([]any{nil, last}, dead, cmp.AllowUnexported(data{})); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	if received != 2 {
		t.Errorf("received %d messages, want the 2 before the PoisonPill", received)
	}
}

// A suspended actor's messages wait, and are consumed once when it goes on or stops.
func TestCarriedWaitsWhileSuspended(t *testing.T) {
	hand := &byHand{}
	m, s := started(hand, config)
	c, consumed := carrying(&data{})
	m.PostSystemMessage(&actor.SuspendMailbox{})
	m.Carry(c)
	hand.run()
	if n := consumed.Load(); n != 0 || len(s.got) != 0 {
		t.Errorf("consumed %d times, received %v, in a suspended mailbox", n, s.got)
	}
	m.PostSystemMessage(&actor.ResumeMailbox{})
	hand.run()
	settled(t, "resumed", consumed)
	if len(s.got) != 1 || s.got[0] != c.Message {
		t.Errorf("received %v", s.got)
	}
}

// A batch is received as Proto.Actor has it, and consumed when all of it is.
func TestCarriedBatch(t *testing.T) {
	hand := &byHand{}
	m, s := started(hand, config)
	b := batch{&data{1}, &data{2}}
	c, consumed := carrying(b)
	m.Carry(c)
	for hand.turn(1) > 0 && consumed.Load() == 0 {
	}
	if len(s.got) != 3 || len(s.got[2].(batch)) != 2 {
		t.Errorf("received %v, want the elements and then the batch", s.got)
	}
	settled(t, "a batch", consumed)
}

// rejecting is a Policy that admits nothing, and counts its answers.
type rejecting struct{ overflows, leftovers int }

func (p *rejecting) Overflow(msg any, _ int32) bool {
	if _, ok := msg.(*data); ok {
		p.overflows++
	}
	return false
}
func (p *rejecting) Leftover(any) { p.leftovers++ }

// A message beyond the bound of a mailbox goes to its Policy, as a bare message, and is consumed.
func TestCarriedBeyondTheLimit(t *testing.T) {
	hand, policy := &byHand{}, &rejecting{}
	m, s := startedWith(hand, &Config{Limit: 1}, policy)
	first, firstConsumed := carrying(&data{1})
	second, secondConsumed := carrying(&data{2})
	m.Carry(first)
	m.Carry(second)
	settled(t, "beyond the limit", secondConsumed)
	if policy.overflows != 1 {
		t.Errorf("the Policy was asked %d times about a bare message, want once", policy.overflows)
	}
	hand.run()
	settled(t, "the first", firstConsumed)
	if len(s.got) != 1 {
		t.Errorf("received %v", s.got)
	}
}

// A message that an ended loop leaves is answered and consumed.
func TestCarriedToAnEndedLoop(t *testing.T) {
	r := newRig(t, 0)
	l := r.addLoop(t, eventloop.Config{Logger: r.sys.Logger()})
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, in(l)))
	m := r.registry.Find(pid)
	if err := l.el.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	c, consumed := carrying(&data{})
	m.Carry(c)
	settled(t, "after the loop's end", consumed)
	stop(t, r.sys, pid)
}

// A mailbox is found for the process that it belongs to, and for no successor of the same name.
func TestFindOf(t *testing.T) {
	r := newRig(t, 1)
	spawn := func() (*actor.PID, actor.Process) {
		pid, err := r.sys.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}, r.OnLoop()), "name")
		if err != nil {
			t.Fatal(err)
		}
		p, _ := r.sys.ProcessRegistry.GetLocal("name")
		return pid, p
	}
	pid, first := spawn()
	m := r.registry.FindOf("name", first)
	if m == nil || m != r.registry.Find(pid) {
		t.Fatalf("found %p, want the actor's mailbox", m)
	}
	stop(t, r.sys, pid)
	pid, second := spawn()
	if got := r.registry.FindOf("name", first); got != nil {
		t.Error("the first process has the mailbox of its successor")
	}
	if got := r.registry.FindOf("name", second); got == nil || got == m {
		t.Error("the successor has no mailbox of its own")
	}
	if r.registry.FindOf("deadletter", r.sys.DeadLetter) != nil {
		t.Error("the dead letter process has a mailbox")
	}
	stop(t, r.sys, pid)
}
