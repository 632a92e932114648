package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// The accepting side may send bundles as soon as it has Established. On the kernel's devices they
// may overtake the connecting side's Established: they come through two descriptors, in any order.
func TestBundlesBeforeEstablished(t *testing.T) {
	for range 10 {
		onAllKinds(t, func(w *world) {
			w.f.Reorder(true)
			client, server := w.probe(), w.farProbe()
			cfg := IDConfig{MaxMessage: 1 << 10, Credits: 64}
			w.listen(server, cfg)
			server.reactWith(func(ctx actor.Context) {
				switch ctx.Message().(type) {
				case *ConnectRequest:
					ctx.Respond(&Accept{})
				case *Established:
					for _, m := range []string{"first", "second", "", "fourth"} {
						ctx.Respond(NewSend([]byte(m)))
					}
				}
			})
			c := w.rt.CreateID(client.pid, cfg)
			client.send(c, &Dial{Addr: there + ":7471"})
			next[*Established](client)
			for _, want := range []string{"first", "second", "", "fourth"} {
				if g := client.any(); g.data != want {
					w.Fatalf("got %v, want %q", g, want)
				}
			}
			w.f.Reorder(false)
			client.send(c, &Close{})
			until[*Closed](client)
			until[*Closed](server)
		})
	}
}
