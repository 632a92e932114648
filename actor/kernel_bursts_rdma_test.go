//go:build linux && rdma

package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A burst of dials on one loop times none of them out: the kernel's answers do not wait behind the
// loop's own queue until it is too late.
func TestKernelManyDials(t *testing.T) {
	leavesNothing(t)
	const dials = 600
	small := IDConfig{Credits: 1, MaxMessage: 64}
	server, client := openKernel(t, testSystem(t)), openKernel(t, testSystem(t))
	owner := newProbe(t, server.sys, server.OnLoop(), func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			ctx.Respond(&Accept{})
		}
	})
	_, at := listen(owner, server, env(t, "RDMA_ADDR")+":0", small)
	p := newProbe(t, client.sys, client.OnLoop(), nil)
	begin := time.Now()
	for range dials {
		p.send(client.CreateID(p.pid, small), &Dial{Addr: at})
	}
	established := 0
	var failed []error
	for established+len(failed) < dials {
		switch m := p.any().msg.(type) {
		case *Established:
			established++
		case Failure:
			failed = append(failed, m)
		case *Closed:
		default:
			t.Fatalf("got %T", m)
		}
	}
	t.Logf("%d of %d dials are established after %v", established, dials, time.Since(begin))
	if len(failed) > 0 {
		t.Errorf("%d failed, the first: %v", len(failed), failed[0])
	}
}

// A peer without credits, such as a foreign program, finds no receive when its owner is slow, and
// sends again after the default MinRNRTimer: it does not stall.
func TestKernelNoReceives(t *testing.T) {
	leavesNothing(t)
	const messages = 60
	rt := openKernel(t, testSystem(t))
	var last time.Time
	stalls := 0
	server := newProbe(t, rt.sys, rt.OffLoop(), func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *ConnectRequest:
			ctx.Respond(&Accept{})
		case *Received:
			if now := time.Now(); !last.IsZero() && now.Sub(last) > 500*time.Millisecond {
				stalls++
			}
			time.Sleep(10 * time.Millisecond)
			last = time.Now()
		}
	})
	raw := IDConfig{Raw: true, Credits: 1, MaxMessage: 64}
	_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0", raw)
	client := newProbe(t, rt.sys, rt.OnLoop(), nil)
	c := rt.CreateID(client.pid, raw)
	client.send(c, &Dial{Addr: at})
	next[*Established](client)
	begin := time.Now()
	for range messages {
		client.send(c, NewSend([]byte("hello")))
	}
	client.send(c, &Close{})
	until[*Closed](server)
	t.Logf("%d of %d messages came more than 0.5 s after the one before; all took %v", stalls, messages, time.Since(begin))
	if stalls > 4 { // a timer of 0, which is 655 ms, causes 7
		t.Errorf("%d of %d messages came more than 0.5 s after the one before", stalls, messages)
	}
}
