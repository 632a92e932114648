package actor

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// A handshake that gets nowhere at one address of a name leaves no goroutine behind, and does not
// affect the one at the next address: some peers accept, and are silent or end then.
func TestHandshakeGoesOnAtTheNextAddress(t *testing.T) {
	for name, then := range map[string]func(p *probe, s *actor.PID){
		"silent": func(*probe, *actor.PID) {},
		"gone":   func(p *probe, s *actor.PID) { next[*Established](p); p.send(s, &DestroyID{}) },
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				k := newCerts(w)
				w.rt.resolve = addresses(there+":7001", there+":7471")
				stuck, server, client := w.farProbe(), w.farProbe(), w.probe()
				listen(stuck, w.far, there+":7001", IDConfig{Raw: true})
				w.listen(server, IDConfig{Security: k.server})
				_, s := dialStuck(w, k, client, stuck)
				then(stuck, s)
				_, s = next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				next[*Established](client)
				time.Sleep(time.Minute)
				settle()
				client.quiet()
				server.quiet()
			})
		})
	}
}

// Close ends a Dial in the middle of a handshake, and nothing is tried afterwards: neither behind
// the reset that the peer answers with, nor while the peer is silent. The same holds for a Dial
// that has gone on to the next address.
func TestCloseEndsADialInItsHandshake(t *testing.T) {
	for _, nth := range []int{1, 2} {
		for name, then := range map[string]func(p *probe, s *actor.PID){
			"silent": func(*probe, *actor.PID) {},
			"reset":  func(p *probe, s *actor.PID) { next[*Established](p); p.send(s, &DestroyID{}) },
		} {
			t.Run(fmt.Sprintf("%s/address %d", name, nth), func(t *testing.T) {
				onFlavors(t, func(w *world) {
					k := newCerts(w)
					addrs := []string{there + ":7001", there + ":7471", there + ":7472"}[2-nth:]
					w.rt.resolve = addresses(addrs...)
					stuck, server, client := w.farProbe(), w.farProbe(), w.probe()
					listen(stuck, w.far, there+":7471", IDConfig{Raw: true})
					listen(server, w.far, there+":7472", IDConfig{Security: k.server})
					id, s := dialStuck(w, k, client, stuck)
					settle()
					client.send(id, &Close{Timeout: time.Hour})
					then(stuck, s)
					began := time.Now()
					until[*Closed](client)
					if d := time.Since(began); d > 2*goodbyeTime {
						w.Errorf("Close took %v", d)
					}
					time.Sleep(time.Minute)
					settle()
					client.quiet()
					server.quiet()
				})
			})
		}
	}
}

// The answer of a dead letter may name no actor, or one that is not the owner: any actor can send
// one, and that ends no connection.
func TestAnswerOfADeadLetterWithoutTarget(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		w.sys.Root.Send(p.c, &actor.DeadLetterResponse{})
		w.sys.Root.Send(p.s, &actor.DeadLetterResponse{Target: actor.NewPID("elsewhere", "nobody")})
		settle()
		p.client.quiet()
		p.server.quiet()
	})
}

// dialStuck dials the name there, whose next address is stuck's. That accepts, and then sends
// nothing.
func dialStuck(w *world, k *certs, client, stuck *probe) (id, accepted *actor.PID) {
	cl := *k.client
	cl.TLS = cl.TLS.Clone()
	cl.TLS.ServerName = there
	id = w.rt.CreateID(client.pid, IDConfig{Security: &cl})
	client.send(id, &Dial{Addr: "there:7471"})
	_, accepted = next[*ConnectRequest](stuck)
	hello := wire.Hello{Features: uint8(secure.FeatureTLS), Credits: 2, Eager: 4 * kib, MaxMessage: kib}.Put(nil)
	stuck.send(accepted, &Accept{PrivateData: hello})
	return id, accepted
}
