package actor

import (
	"testing"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// A message of a bundle costs memory besides its bytes. However small the messages are that a peer
// bundles, an owner that retains them retains no more than counts: else the limit of what a loop
// receives would limit nothing.
func TestBundledMessagesCountOneByOne(t *testing.T) {
	onFlavors(t, func(w *world) {
		server := w.farProbe()
		w.listen(server, IDConfig{MaxMessage: 1 << 10, Credits: wire.MaxBundle})
		mallory, id, _, _ := w.peerOf(server, 5)
		var kept []*Received
		server.reactWith(keeping(&kept))
		mallory.send(id, NewSend(bundleOf(make([]string, wire.MaxBundle)...)))
		for range wire.MaxBundle {
			next[*Received](server)
		}
		if n := w.held(w.far); n < 256*wire.MaxBundle {
			w.Errorf("%d messages count %d bytes", len(kept), n)
		}
		for _, m := range kept {
			m.Release()
		}
		settle()
		if n := w.held(w.far); n != 0 {
			w.Errorf("%d bytes count when all is released", n)
		}
		kept = nil
		mallory.send(id, NewSend(bundleOf("alone"))) // into the same receive
		next[*Received](server)
		settle()
		if n := w.held(w.far); n > 2<<10 {
			w.Errorf("a single message counts %d bytes", n)
		}
		mallory.send(id, &Disconnect{})
		until[*Closed](mallory)
		kept[0].Release()
	})
}
