package rpc

import (
	"context"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// Dial's context is shared out over the addresses of a name, of which one may be silent. Later
// connections begin with the address that worked last.
func TestSilentAddressOfAName(t *testing.T) {
	inWorlds(t, handleEcho, func(r *rig) {
		const silent = "10.0.0.66"
		w := r.Probe()
		w.Request(r.Host("mem2", silent).CreateID(w.PID(), rdma.IDConfig{AcceptTimeout: time.Hour}), &rdma.Serve{Addr: ":7471"})
		actortest.Next[*rdma.Listening](w)
		r.Name("svc", silent, there)
		// less than the 5 s that each of two addresses has without a deadline
		ctx, cancel := context.WithTimeout(r.t.Context(), 4500*time.Millisecond)
		defer cancel()
		c, err := Dial(ctx, r.Runtime(), "svc:7471", quick)
		if err != nil {
			r.t.Fatal(err)
		}
		defer c.Close()
		r.s.Close()
		r.again()
		begin := r.Elapsed()
		for {
			if _, err = CallRaw(r.t.Context(), c, echo, nil, nil); err == nil {
				break
			}
			r.Advance(10 * time.Millisecond)
		}
		if d := r.Elapsed() - begin; d >= 2*time.Second {
			r.t.Errorf("it was connected again after %v: it has tried the silent address first", d)
		}
	})
}

// A context that ends Dial is the error, although Dial has its deadline too.
func TestDialsDeadline(t *testing.T) {
	inWorlds(t, handleEcho, func(r *rig) {
		r.Name("svc", there, there)
		r.Silence(there)
		for range 10 { // with equal deadlines either call might end first
			ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
			_, err := Dial(ctx, r.Runtime(), "svc:7471")
			cancel()
			want(r.t, err, ErrDeadline, FateNotSent)
		}
		r.Unsilence(there)
	})
}
