package actor

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Strangers that have more addresses than there are places for handshakes, and do not go on, cost
// honest peers nothing: the strangers' handshakes give way, and none of them reaches the owner.
func TestStrangersWithManyAddresses(t *testing.T) {
	const places, strangers, good = 128, 250, 8
	for name, networks := range map[string]int{"of many networks": strangers, "of one network": 1} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
				onFlavors(t, func(w *world) {
					sec := made(w)
					sec.NoAddresses = true
					if sec.TLS != nil {
						sec.TLS.ServerName = "alice"
					}
					server := w.farProbe()
					server.reactWith(func(ctx actor.Context) {
						if _, ok := ctx.Message().(*ConnectRequest); ok {
							ctx.Respond(&Accept{})
						}
					})
					w.listen(server, IDConfig{Security: sec})
					var from []string
					for i := range strangers {
						from = append(from, fmt.Sprintf("10.1.%d.%d/8", i%networks, 1+i))
					}
					w.f.Host("abroad").AddDevice("mem2", from...)
					abroad := w.open(w.f.Host("abroad").Driver(), Config{})
					mallory := newProbe(w, w.sys, abroad.OnLoop(), nil)
					hello := half(w, sec)
					for i := range strangers {
						src := MustAddr(fmt.Sprintf("10.1.%d.%d:0", i%networks, 1+i))
						mallory.send(abroad.CreateID(mallory.pid, IDConfig{Raw: true}), &Dial{Addr: there + ":7471", Src: src, PrivateData: hello})
					}
					time.Sleep(time.Second) // they have all arrived, and are silent
					client := w.probe()
					for range good {
						client.send(w.rt.CreateID(client.pid, IDConfig{Security: sec}), &Dial{Addr: there + ":7471"})
					}
					for range good {
						next[*Established](client)
					}
					settle()
					// A connected peer holds no place.
					if n := w.far.count.Load(); n > 1+places+good {
						w.Errorf("%d identifiers, want the listener's, at most %d handshakes' and %d connections': evicted ones are destroyed", n, places, good)
					}
					time.Sleep(20 * time.Second)
					settle()
					if n := len(server.got); n != 2*good {
						w.Errorf("the owner got %d messages, want a request and an end of it for each of %d", n, good)
					}
					w.unauthenticated(strangers)
					if n := w.far.count.Load(); n != 1+good {
						w.Errorf("%d identifiers are left, want the listener and %d connections", n, good)
					}
				}, Config{Limits: Limits{Handshakes: places}})
			})
		})
	}
}
