package inbox

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
)

// real is a link's actor on the embedded device's loops, in real time.
type real struct {
	tb   testing.TB
	sys  *actor.ActorSystem
	rt   *rdma.Runtime
	link *actor.PID
	done chan struct{}
	// refused counts
	refused atomic.Int64
}

func newReal(tb testing.TB, cfg Config, loops int) *real {
	tb.Helper()
	r := &real{tb: tb, done: make(chan struct{})}
	r.sys = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	rt, err := rdma.Open(r.sys, rdma.Config{Device: iwarp.New(), Loops: make([]eventloop.Config, loops), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	r.rt = rt
	cfg.System, cfg.Runtime = r.sys, rt
	cfg.Refuse = func(*actor.PID, any, int, *actor.PID, error) { r.refused.Add(1) }
	var in *Inbox
	r.link = r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			in = New(ctx, cfg)
		case func(*Inbox):
			m(in)
			rdma.LocalOf(ctx).Woke()
			r.done <- struct{}{}
		default:
			in.Receive(ctx)
		}
	}, rt.OnLoop()))
	tb.Cleanup(func() {
		r.do(func(in *Inbox) { in.Close() })
		if err := rt.Shutdown(context.Background()); err != nil {
			tb.Error(err)
		}
		r.sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters ends
	})
	return r
}

// do calls fn on the link's loop and waits for it.
func (r *real) do(fn func(in *Inbox)) {
	r.sys.Root.Send(r.link, fn)
	<-r.done
}

// BenchmarkDeliver is one message of 64 bytes to each kind of target, 64 in a turn, until the
// target has received it.
func BenchmarkDeliver(b *testing.B) {
	for _, name := range []string{"on the loop", "off the loop", "default", "lock-free", "with mailbox middleware", "bounded"} {
		b.Run(name, func(b *testing.B) {
			r := newReal(b, Config{}, 1)
			var got, want atomic.Int64
			all := make(chan struct{}, 1)
			pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*note); ok && got.Add(1) == want.Load() {
					rdma.LocalOf(ctx).Woke()
					all <- struct{}{}
				}
			}, homes[name](r.rt)...))
			env := &actor.MessageEnvelope{Message: &note{}, Sender: r.link}
			send := func(n int) {
				want.Add(int64(n))
				for n > 0 {
					k := min(n, 64)
					r.do(func(in *Inbox) {
						for range k {
							in.Deliver(pid, env, 64, nil)
						}
					})
					n -= k
				}
				<-all
			}
			send(64)
			b.ReportAllocs()
			b.ResetTimer()
			send(b.N)
			b.StopTimer()
			if n := r.refused.Load(); n != 0 {
				b.Fatalf("%d refused", n)
			}
		})
	}
	b.Run("future", func(b *testing.B) {
		r := newReal(b, Config{}, 1)
		msg := &note{}
		b.ReportAllocs()
		for range b.N {
			f := actor.NewFuture(r.sys, time.Minute)
			r.do(func(in *Inbox) { in.Deliver(f.PID(), msg, 64, nil) })
			if err := f.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPost is what Deliver alone costs, beside Proto.Actor's own Send to the same actor.
func BenchmarkPost(b *testing.B) {
	for _, name := range []string{"on the loop", "off the loop", "default"} {
		for _, by := range []string{"Deliver", "Send"} {
			b.Run(name+"/"+by, func(b *testing.B) {
				r := newReal(b, Config{Window: 1 << 40, Bytes: 1 << 41}, 1)
				pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, homes[name](r.rt)...))
				env := &actor.MessageEnvelope{Message: &note{}, Sender: r.link}
				b.ReportAllocs()
				for n := b.N; n > 0; n -= 1000 {
					r.do(func(in *Inbox) {
						for range min(n, 1000) {
							if by == "Send" {
								r.sys.Root.Send(pid, env)
							} else {
								in.Deliver(pid, env, 64, nil)
							}
						}
					})
				}
			})
		}
	}
}
