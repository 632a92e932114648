package inbox

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// counter is an actor that counts notes, which come in order.
type counter struct {
	pid  *actor.PID
	next int // the actor's
	done chan struct{}
	mess atomic.Bool
}

func newCounter(r *real, n int, opts ...actor.PropsOption) *counter {
	c := &counter{done: make(chan struct{})}
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		m, ok := ctx.Message().(*note)
		if !ok {
			return
		}
		if m.n != c.next {
			c.mess.Store(true)
		}
		if c.next++; c.next == n {
			close(c.done)
		}
	}, opts...))
	c.pid = actor.NewPID(pid.Address, pid.Id)
	return c
}

// On real loops and goroutines, with a window that is always full: every kind of actor gets all
// messages in order, also while the way in which it is sent to changes, and nothing is refused.
func TestStress(t *testing.T) {
	const n = 20000
	r := newReal(t, Config{Window: 16 << 10, Bytes: 1 << 20, Patience: time.Hour}, 3)
	var all []*counter
	for _, home := range homes {
		for range 2 {
			all = append(all, newCounter(r, n, home(r.rt)...))
		}
	}
	all = append(all, newCounter(r, n, actor.WithMailbox(actor.Bounded(16))))
	msgs := make([]*note, n)
	for i := range msgs {
		msgs[i] = &note{i}
	}
	for i := 0; i < n; {
		k := min(n-i, 1+i%100)
		r.do(func(in *Inbox) {
			for _, m := range msgs[i : i+k] {
				for _, c := range all {
					in.Deliver(c.pid, m, 100, nil)
				}
			}
		})
		if i += k; i%7 == 0 {
			runtime.Gosched()
		}
	}
	for _, c := range all {
		<-c.done
		if c.mess.Load() {
			t.Errorf("%v: out of order", c.pid)
		}
	}
	if k := r.refused.Load(); k != 0 {
		t.Errorf("%d refused", k)
	}
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() { _ = r.sys.Root.StopFuture(c.pid).Wait() })
	}
	wg.Wait()
}

// A full bounded mailbox makes its senders spin until there is room. That costs the inbox a
// goroutine, and no other target anything.
func TestAFullBoundedMailbox(t *testing.T) {
	r := newReal(t, Config{Window: 16 << 10}, 1)
	gate := make(chan struct{})
	blocked := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*note); ok {
			<-gate
		}
	}, actor.WithMailbox(actor.Bounded(2))))
	const n = 1000
	c := newCounter(r, n)
	r.do(func(in *Inbox) {
		for i := range n {
			in.Deliver(blocked, &note{i}, 10, nil)
			in.Deliver(c.pid, &note{i}, 10, nil)
		}
	})
	<-c.done
	close(gate)
	if err := r.sys.Root.PoisonFuture(blocked).Wait(); err != nil {
		t.Error(err)
	}
}
