//go:build linux && rdma

package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A burst of dials on one loop costs none of them its time: what the kernel has answered does not
// wait behind the loop's own queue until it is too late.
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
