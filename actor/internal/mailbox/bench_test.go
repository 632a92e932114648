package mailbox

import (
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// BenchmarkDeliver is the figure "in-loop delivery of an event to an actor's Receive against one
// buffered channel hop". The two alternate in slices of the same size, so that whatever else the
// machine does hits both.
func BenchmarkDeliver(b *testing.B) {
	r := newRig(b, 1)
	received := 0
	pid := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*event); ok {
			received++
		}
	}, r.OnLoop()))
	l, m := r.loops[0], r.boxOf(pid)
	on(b, l, func() {}) // Started has been received

	const slice = 1000
	env := &actor.MessageEnvelope{Message: &event{}, Sender: pid}
	hops := make(chan any, slice)
	defer close(hops)
	arrived := make(chan struct{})
	go func() {
		n := 0
		for range hops {
			if n++; n == slice {
				n = 0
				arrived <- struct{}{}
			}
		}
	}()
	var inLoop, channel time.Duration
	rounds := b.N/slice + 1
	b.ReportAllocs()
	b.ResetTimer()
	on(b, l, func() {
		for range rounds {
			start := time.Now()
			for range slice {
				m.Deliver(env)
			}
			middle := time.Now()
			for range slice {
				hops <- env
			}
			<-arrived
			inLoop += middle.Sub(start)
			channel += time.Since(middle)
		}
	})
	b.StopTimer()
	if received != rounds*slice {
		b.Fatalf("received %d of %d", received, rounds*slice)
	}
	messages := float64(rounds * slice)
	b.ReportMetric(float64(inLoop.Nanoseconds())/messages, "deliver-ns")
	b.ReportMetric(float64(channel.Nanoseconds())/messages, "channel-ns")
	b.ReportMetric(float64(inLoop)/float64(channel), "ratio")
}

// BenchmarkPingPong is a message there and one back, between two actors of one loop and between
// two of Proto.Actor's own.
func BenchmarkPingPong(b *testing.B) {
	r := newRig(b, 1)
	for _, c := range []struct {
		name string
		opts []actor.PropsOption
	}{{"one-loop", []actor.PropsOption{r.OnLoop()}}, {"off-loop", []actor.PropsOption{r.OffLoop()}}, {"proto-actor", nil}} {
		b.Run(c.name, func(b *testing.B) {
			done := make(chan struct{})
			pong := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*ball); ok {
					ctx.Send(m.from, m)
				}
			}, c.opts...))
			n := 0
			ping := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				m, ok := ctx.Message().(*ball)
				if !ok {
					return
				}
				if n++; n > b.N {
					close(done)
					return
				}
				m.from = ctx.Self()
				ctx.Send(pong, m)
			}, c.opts...))
			b.ReportAllocs()
			b.ResetTimer()
			r.sys.Root.Send(ping, &ball{})
			<-done
			b.StopTimer()
			stop(b, r.sys, ping, pong)
		})
	}
}

// ball goes to and fro.
type ball struct{ from *actor.PID }

// BenchmarkPost is one message to an actor of a loop, from an actor of that loop and from
// elsewhere. In bursts, as messages come: a queue of b.N would measure the memory of b.N messages.
func BenchmarkPost(b *testing.B) {
	const burst = 64
	for _, name := range []string{"from-loop", "from-elsewhere"} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, 1)
			received, done := 0, make(chan struct{}, 1)
			var source *actor.PID
			sink := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				m, ok := ctx.Message().(*ball)
				if !ok {
					return
				}
				if received++; received%burst != 0 {
					return
				}
				if m.from != nil && received < b.N {
					ctx.Send(source, m)
				} else {
					done <- struct{}{}
				}
			}, r.OnLoop()))
			source = r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*ball); ok {
					m.from = ctx.Self()
					for range burst {
						ctx.Send(sink, m)
					}
				}
			}, r.OnLoop()))
			b.ReportAllocs()
			b.ResetTimer()
			if name == "from-loop" {
				r.sys.Root.Send(source, &ball{})
				<-done
				return
			}
			msg := &ball{}
			for left := b.N; left > 0; left -= burst {
				for range burst {
					r.sys.Root.Send(sink, msg)
				}
				<-done
			}
		})
	}
}

// BenchmarkIdleActors is the memory of an actor that has nothing to do: all of it, and the
// mailbox's part.
func BenchmarkIdleActors(b *testing.B) {
	const actors = 100_000
	for b.Loop() {
		r := newRig(b, 1)
		props := actor.PropsFromFunc(func(actor.Context) {}, r.OnLoop())
		before := heapInUse()
		for range actors {
			r.sys.Root.Spawn(props)
		}
		on(b, r.loops[0], func() {})
		b.ReportMetric(float64(heapInUse()-before)/actors, "B/actor")
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
