package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// A connection that is requested while Shutdown begins, and whose actor has not started when
// Shutdown looks who is there, is not left over: Shutdown would wait for it for ever.
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

// A request that comes when Shutdown has begun is rejected at once.
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
