package actor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/states"
)

// A connection that is requested while Shutdown begins, and whose actor has not started when
// Shutdown lists the identifiers, is not left over: Shutdown would wait for it forever.
func TestShutdownMeetsARequest(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		l, empty := w.far.loops[0], make(chan struct{})
		server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				w.far.closing.Store(true)
				// what Shutdown posts: in the queue before the new actor's Started
				l.shutDown(empty)
				ctx.Respond(&Accept{})
			}
		})
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		settle()
		select {
		case <-empty:
		default:
			w.Errorf("Shutdown waits for %+v", w.far.Inspect())
		}
	})
}

// A request that arrives after Shutdown has begun is rejected immediately.
func TestRequestAfterShutdownBegan(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		w.far.closing.Store(true)
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		settle()
		server.quiet()
		next[*Rejected](client)
	})
}

// Shutdown does not wait for an Accept that the device has not begun: it is answered, the peer is
// rejected, and nothing is left.
func TestShutdownDuringAnAccept(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, far *kernelLike) {
		far.takes = map[states.Op]time.Duration{states.OpAccept: time.Hour}
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		asker := w.farProbe()
		asker.send(s, &Accept{})
		settle()
		if n := far.did[states.OpAccept]; n != 1 {
			w.Fatalf("the device was asked for %d Accepts", n)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		took := elapsed(func() {
			if err := w.far.Shutdown(ctx); err != nil {
				w.Error(err)
			}
		})
		if took > abortFor {
			w.Errorf("Shutdown returned after %v", took)
		}
		if got := w.far.Inspect(); len(got) != 0 {
			w.Errorf("Inspect afterwards: %v", got)
		}
		for _, left := range w.f.Left() {
			if strings.Contains(left, "mem1") || strings.Contains(left, "the host far") {
				w.Errorf("left: %s", left)
			}
		}
		f, _ := next[*CommandFailed](asker)
		is(w, f, ErrShutdown)
		until[*Closed](server)
		next[*Rejected](client)
	})
}
