package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// Owners that retain all the small messages that their connections may receive, and large ones of
// many others: together they take nothing of the floor of a connection whose owner retains none.
func TestFloorBesideWhatIsRetained(t *testing.T) {
	onFlavors(t, func(w *world) {
		const size, crowd = 60 << 10, 14 // of a message; and whose messages are offered
		cfg := IDConfig{MaxMessage: 512 << 10, Credits: 4}
		good := w.connect(cfg)
		cfg.eager = 64 << 10 // however many there are: the server states its eager limit
		var hoarders []pair
		for range 2 + crowd {
			hoarders = append(hoarders, w.connectTo(good.server, cfg))
			next[*Established](good.server)
		}
		var kept []*Received
		over := false
		good.server.reactWith(func(ctx actor.Context) {
			<-good.server.got // it is not looked at
			m, ok := ctx.Message().(*Received)
			switch {
			case !ok || over:
			case len(m.Data) > 100:
				kept = append(kept, m.Retain())
			default:
				ctx.Respond(NewSend(m.Data))
			}
		})
		for i, n := range []int{3, 1} {
			for range n {
				hoarders[i].client.send(hoarders[i].c, NewSend(make([]byte, size)))
			}
			settle()
		}
		for _, p := range hoarders[2:] {
			p.client.send(p.c, NewSend(make([]byte, size)))
			settle()
		}
		for range 10 {
			good.client.send(good.c, NewSend([]byte("hello")))
			settle()
			if len(good.client.got) == 0 {
				w.Errorf("the good peer is not answered when %d messages are retained", len(kept))
				break
			}
			good.client.any()
		}
		w.onLoop(w.far, func(*loop) {
			over = true
			for _, m := range kept {
				m.Release()
			}
		})
		settle()
	}, Config{Limits: Limits{ReceiveMemory: 1<<20 + 4321}})
}
