package actor

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
)

// tlsHand is a peer that does TLS mode by hand, on a raw identifier.
type tlsHand struct {
	*probe
	id     *actor.PID
	tls    *secure.TLS
	secure *secure.Channel
}

// tlsHello is mallory's hello, with a hint of 0.
var tlsHello = wire.Hello{Features: uint8(secure.FeatureTLS), Credits: 16, Eager: kib, MaxMessage: kib}.Put(make([]byte, secure.HintLen))

// handTLS connects mallory, with the client's configuration, as far as the reply.
func (w *world) handTLS(k *certs) *tlsHand {
	w.Helper()
	m := &tlsHand{probe: w.probe()}
	m.id = w.rt.CreateID(m.pid, IDConfig{Raw: true})
	m.send(m.id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
	local, _ := next[*cmid.AddrResolved](m.probe)
	m.send(m.id, &cmid.ResolveRoute{})
	next[*cmid.RouteResolved](m.probe)
	m.send(m.id, &Connect{PrivateData: tlsHello})
	est, _ := next[*Established](m.probe)
	peer := secure.TLSPeer{
		Request: secure.Hello(tlsHello), Reply: secure.Hello(est.PrivateData), Receive: kib, ServerName: there,
		Binding: secure.Binding{Device: secure.DeviceInfiniBand, Client: local.Local.Addr(), Server: MustAddr(there + ":7471").AddrPort},
	}
	if w.flavor != 0 {
		peer.Binding.Device = secure.DeviceIWARP
	}
	var err error
	if m.tls, err = secure.NewTLSClient(w.Context(), k.client.TLS, peer); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(m.tls.Close)
	return m
}

// speak sends the frames that are due.
func (m *tlsHand) speak() {
	for f := m.tls.Next(); f != nil; f = m.tls.Next() {
		m.send(m.id, NewSend(f))
	}
}

// finish does the handshake.
func (m *tlsHand) finish() {
	m.tb.Helper()
	for !m.tls.Done() {
		m.speak()
		if err := m.tls.Take([]byte(m.any().data)); err != nil {
			m.tb.Fatal(err)
		}
	}
	m.speak()
	var err error
	if m.secure, _, err = m.tls.Finish(); err != nil {
		m.tb.Fatal(err)
	}
}

func (m *tlsHand) say(b []byte) {
	sealed, err := m.secure.Seal.Seal(nil, b)
	if err != nil {
		m.tb.Fatal(err)
	}
	m.send(m.id, NewSend(sealed))
}

// A peer that does not keep to the handshake has no identity, whatever it sends, and the owner is
// not notified of anything.
func TestTLSPeerBreaksTheHandshake(t *testing.T) {
	hello := append([]byte{11, 0, 1, 0, 0xff, 0xff}, make([]byte, 800)...) // the longest there is
	for name, misbehave := range map[string]func(m *tlsHand){
		"frames without an end": func(m *tlsHand) {
			for range 50 {
				m.send(m.id, NewSend(hello))
			}
		},
		"a byte at a time": func(m *tlsHand) {
			f := m.tls.Next()
			for i := range 50 {
				m.send(m.id, NewSend([]byte{11, 0, f[2+i]}))
			}
		},
		"nudges without an end": func(m *tlsHand) {
			for range 50 {
				m.send(m.id, NewSend(secure.NudgeFrame()))
			}
		},
		"as much as fits at once": func(m *tlsHand) {
			for range 8 {
				m.send(m.id, NewSend(append([]byte{11, 0}, make([]byte, 15<<10)...)))
			}
		},
		"sealed too early": func(m *tlsHand) { m.send(m.id, NewSend(append([]byte{11, 2}, make([]byte, 60)...))) },
		"early data":       func(m *tlsHand) { m.send(m.id, NewSend([]byte{11, 1, 0, 0})) },
		"a message":        func(m *tlsHand) { m.send(m.id, NewSend(append(wire.TypeData.Put(nil), "hello"...))) },
		"a request":        func(m *tlsHand) { m.send(m.id, NewSend(wire.TypeRequest.Put(nil))) },
		"nothing":          func(m *tlsHand) { m.send(m.id, NewSend(nil)) },
		"an alert":         func(m *tlsHand) { m.send(m.id, NewSend(secure.InternalAlert())) },
		"its hello twice": func(m *tlsHand) {
			f := m.tls.Next()
			m.send(m.id, NewSend(f))
			m.send(m.id, NewSend(f))
		},
		"another frame behind its last": func(m *tlsHand) {
			m.finish()
			m.send(m.id, NewSend([]byte{11, 0, 1}))
		},
		"data behind its last frame": func(m *tlsHand) {
			m.finish()
			m.say(append(wire.TypeData.Put(nil), "early"...))
		},
		"clear behind its last frame": func(m *tlsHand) {
			m.finish()
			m.send(m.id, NewSend(wire.TypeRequest.Put(nil)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				k, server := newCerts(w), w.farProbe()
				w.listen(server, IDConfig{Security: k.server})
				m := w.handTLS(k)
				misbehave(m)
				if d := elapsed(func() { until[*Closed](m.probe) }); d > time.Second {
					w.Errorf("it is let go after %v", d)
				}
				settle()
				server.quiet()
				w.unauthenticated(1)
			})
		})
	}
}

// The same while the user's code blocks, so that nothing is taken.
func TestTLSFramesWhileUserBlocks(t *testing.T) {
	for name, f := range map[string][]byte{"small": {11, 0, 1}, "large": append([]byte{11, 0}, make([]byte, 15<<10)...)} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				k, server := newCerts(w), w.farProbe()
				release := make(chan struct{})
				defer close(release)
				k.server.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { <-release; return nil, nil }
				w.listen(server, IDConfig{Security: k.server})
				m := w.handTLS(k)
				m.speak()
				settle()
				for range 50 {
					m.send(m.id, NewSend(f))
				}
				if d := elapsed(func() { until[*Closed](m.probe) }); d > time.Second {
					w.Errorf("it is let go after %v", d)
				}
				server.quiet()
				w.unauthenticated(1)
			})
		})
	}
}

// A long chain of certificates takes many frames, and an owner that grants one message has
// receives for them. Certificates that take too many are refused.
func TestTLSLongChains(t *testing.T) {
	for extra, ok := range map[int]bool{20: true, 40: false} {
		t.Run(fmt.Sprint(extra), func(t *testing.T) {
			onKernelLike(t, kernelLike{fail: 3}, func(w *world, _, _ *kernelLike) {
				k := newCerts(w)
				for range extra {
					for _, c := range []*tls.Config{k.server.TLS, k.client.TLS} {
						c.Certificates[0].Certificate = append(c.Certificates[0].Certificate, k.Cert.Raw)
					}
				}
				small := IDConfig{Credits: 1, MaxMessage: kib, Security: k.server}
				server, client := w.farProbe(), w.probe()
				w.listen(server, small)
				small.Security = k.client
				client.send(w.rt.CreateID(client.pid, small), &Dial{Addr: there + ":7471"})
				if !ok {
					f, _ := until[*Closed](client)[0].msg.(Failure)
					is(w, f, unix.EACCES)
					return
				}
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				next[*Established](client)
			})
		})
	}
}

// What belongs to the handshake, in the clear or sealed, ends a connection that is established.
func TestTLSFramesLater(t *testing.T) {
	for name, later := range map[string]func(m *tlsHand){
		"a frame":        func(m *tlsHand) { m.send(m.id, NewSend([]byte{11, 0, 1, 0, 0, 0})) },
		"an alert":       func(m *tlsHand) { m.send(m.id, NewSend(secure.InternalAlert())) },
		"a sealed frame": func(m *tlsHand) { m.say([]byte{11, 0, 1, 0, 0, 0, 0, 0, 0, 0}) },
		"a sealed alert": func(m *tlsHand) { m.say(secure.InternalAlert()) },
		"clear":          func(m *tlsHand) { m.send(m.id, NewSend(append(wire.TypeData.Put(nil), "got you"...))) },
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				k, server := newCerts(w), w.farProbe()
				w.listen(server, IDConfig{Security: k.server})
				m := w.handTLS(k)
				m.finish()
				m.say(wire.TypeRequest.Put(nil))
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				m.say(append(wire.TypeData.Put(nil), "fine"...))
				if g := server.any(); g.data != "fine" {
					w.Fatalf("got %v", g)
				}
				later(m)
				end := until[*Closed](server)
				if c := end[len(end)-1].msg.(*Closed); c.Err == nil || kinds(end) != "Disconnected Closed" {
					w.Errorf("the end: %v", end)
				}
				until[*Closed](m.probe)
			})
		})
	}
}

// Peers that begin a handshake and do not go on take a bounded number of places and bytes, for a
// bounded time, and one address does not take them all.
func TestTLSHalfOpen(t *testing.T) {
	for name, first := range map[string][]byte{"silent": nil, "half a hello": append([]byte{11, 0, 1, 0, 0xff, 0xff}, make([]byte, 900)...)} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				w.f.Host("third").AddDevice("mem2", "10.0.0.9")
				third := w.open(w.f.Host("third").Driver(), Config{})
				k, server := newCerts(w), w.farProbe()
				w.listen(server, IDConfig{Security: k.server})
				mallory := w.probe()
				for range 1000 {
					mallory.send(w.rt.CreateID(mallory.pid, IDConfig{Raw: true}), &Dial{Addr: there + ":7471", PrivateData: tlsHello})
				}
				open, refused := 0, 0
				for open+refused < 1000 {
					switch g := mallory.any(); e := g.msg.(type) {
					case *Established:
						open++
						if first != nil {
							mallory.send(g.sender, NewSend(first))
						}
					case *Rejected:
						refused++
					case *Closed:
					default:
						w.Fatalf("mallory gets %T", e)
					}
				}
				honest := newProbe(w, w.sys, third.OnLoop(), nil)
				honest.send(third.CreateID(honest.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				next[*Established](honest)
				if open < 100 || open > 512 {
					w.Errorf("%d handshakes of one address are open, %d refused", open, refused)
				}
				time.Sleep(20 * time.Second)
				settle()
				server.quiet()
				w.unauthenticated(1000)
				if n := w.far.count.Load(); n != 2 {
					w.Errorf("%d identifiers are left, want the listener and one connection", n)
				}
			})
		})
	}
}

// Whatever frame is changed, cut or lost on its way, or comes twice, there is no connection.
func TestTLSFramesAreChanged(t *testing.T) {
	var before []byte
	changes := map[string]func(b []byte) []byte{
		"type":   func(b []byte) []byte { b[0] ^= 1; return b },
		"level":  func(b []byte) []byte { b[1] ^= 2; return b },
		"middle": func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"end":    func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b },
		"cut":    func(b []byte) []byte { return b[:len(b)-1] },
		"empty":  func([]byte) []byte { return []byte{} },
		"before": func([]byte) []byte { return before },
		"clear":  func([]byte) []byte { return wire.TypeRequest.Put(nil) },
	}
	for at := range 4 { // both hellos, and what follows each
		for name, change := range changes {
			t.Run(fmt.Sprintf("%d/%s", at, name), func(t *testing.T) {
				onFlavors(t, func(w *world) {
					n := -1
					w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
						if m != cmidtest.MsgSend {
							return b
						}
						if n++; n == at {
							clean := bytes.Clone(b)
							b, before = change(b), clean
							return b
						}
						before = bytes.Clone(b)
						return b
					})
					k := newCerts(w)
					server, client, _ := w.dialTLS(k.server, k.client)
					end := until[*Closed](client)
					if f, ok := end[0].msg.(Failure); !ok || len(end) != 2 {
						w.Errorf("the client gets %v", end)
					} else if at > 0 {
						is(w, f, unix.EACCES)
					}
					settle()
					server.quiet()
				})
			})
		}
	}
}
