package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// cpuTime returns the processor time of this process: the effect of other processes is smaller than
// on the elapsed time.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOneWay measures 64-byte messages one way over the embedded device, both ends on one
// loop: the cost of sending and receiving a message together.
func BenchmarkOneWay(b *testing.B) { oneWayEmbedded(b, IDConfig{}) }

// BenchmarkOneWaySecured is the same on a secured connection.
func BenchmarkOneWaySecured(b *testing.B) { oneWayEmbedded(b, secured(b)) }

func oneWayEmbedded(b *testing.B, cfg IDConfig) {
	const batch = 1024
	rt := openIWARP(b, testSystem(b), Config{Limits: Limits{SendQueue: ahead*batch + 1}})
	oneWay(b, rt, "127.0.0.1", batch, cfg)
}

// ahead is how many batches oneWay has under way.
const ahead = 4

// oneWay sends messages in batches, and asks to be notified of each batch's last.
func oneWay(b *testing.B, rt *Runtime, host string, batch int, cfg IDConfig) {
	sys := rt.sys
	payload := make([]byte, 64)
	var id *actor.PID
	sent, received := 0, 0 // the loop's
	done := make(chan struct{})
	send := func(ctx actor.Context) {
		for range batch - 1 {
			ctx.Send(id, NewSend(payload))
		}
		last := NewSend(payload)
		last.Notify = true
		ctx.Request(id, last)
		sent += batch
	}
	server := newProbe(b, sys, rt.OnLoop(), nil)
	client := newProbe(b, sys, rt.OnLoop(), nil)
	cfg.MaxMessage, cfg.Credits = 1024, 2*ahead*batch
	p := connectOn(b, rt, host, server, client, cfg)
	want := 0
	sink := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*Received); ok {
			if received++; received == want {
				done <- struct{}{}
			}
		}
	}, rt.OnLoop()))
	source := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case int:
			want = sent + (m+batch-1)/batch*batch
			for range ahead {
				if sent < want {
					send(ctx)
				}
			}
		case *Sent:
			if sent < want {
				send(ctx)
			}
		}
	}, rt.OnLoop()))
	id = p.c
	server.send(p.s, &Handover{To: sink})
	client.send(p.c, &Handover{To: source})
	next[*Done](server)
	next[*Done](client)
	sys.Root.Send(source, 100*batch)
	<-done
	b.ReportAllocs()
	b.ResetTimer()
	start := cpuTime()
	sys.Root.Send(source, b.N)
	<-done
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
	stop(b, sys, sink, source)
}
