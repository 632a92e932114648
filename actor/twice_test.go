package actor

import (
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
)

// Of two that send the same Connect, and not two alike, the first is answered with the connection,
// and the second is refused.
func TestOneConnectSentTwice(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, owner, first, second := w.farProbe(), w.probe(), w.probe(), w.probe()
		w.listen(server)
		id := w.rt.CreateID(owner.pid, IDConfig{})
		owner.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
		next[*cmid.AddrResolved](owner)
		owner.send(id, &cmid.ResolveRoute{})
		next[*cmid.RouteResolved](owner)
		c := &Connect{}
		first.send(id, c)
		second.send(id, c)
		if f, _ := next[*CommandFailed](second); f.Command != c {
			w.Errorf("the refusal names %v", f.Command)
		}
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](first)
		next[*Established](owner)
	})
}
