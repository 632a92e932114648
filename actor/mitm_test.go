package actor

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
)

// Whatever byte of a request or a reply is changed on its way, there is no connection, and the
// listener's owner hears of nothing.
func TestEveryByteOfTheHandshake(t *testing.T) {
	for kind, n := range map[cmidtest.Message]int{
		cmidtest.MsgREQ: wire.HelloLen + secure.HintLen + secure.PSKRequestLen, cmidtest.MsgREP: wire.HelloLen + secure.PSKReplyLen,
	} {
		for i := range n {
			for _, bit := range []byte{1, 1 << 7} {
				t.Run(fmt.Sprintf("%v/%d/%d", kind, i, bit), func(t *testing.T) {
					onFlavors(t, func(w *world) {
						w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
							if m == kind {
								b[i] ^= bit
							}
							return b
						})
						w.noConnection()
					})
				})
			}
		}
	}
}

// A side that is not secured does not accept a reply that claims to be.
func TestUpgradeIsRefused(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
			if m == cmidtest.MsgREP {
				b[6] |= uint8(secure.FeaturePSK)
			}
			return b
		})
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		end := until[*Closed](client)
		if f, ok := end[0].msg.(Failure); !ok || !errors.Is(f, unix.EACCES) {
			w.Errorf("the client gets %v", end)
		}
		until[*Closed](server)
	})
}

// noConnection tries to connect, which must not succeed.
func (w *world) noConnection() {
	w.Helper()
	server, client := w.farProbe(), w.probe()
	w.listen(server, secured(w))
	c := w.rt.CreateID(client.pid, secured(w))
	client.send(c, &Dial{Addr: there + ":7471"})
	end := until[*Closed](client)
	if _, ok := end[0].msg.(Failure); !ok || len(end) != 2 {
		w.Errorf("the client gets %v", end)
	}
	settle()
	server.quiet()
	client.quiet()
}

// The same for the first records of both sides, which may also be cut short, longer, or empty.
func TestFirstRecordsAreChanged(t *testing.T) {
	change := map[string]func(b []byte) []byte{
		"first byte": func(b []byte) []byte { b[0] ^= 1; return b },
		"last byte":  func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b },
		"cut":        func(b []byte) []byte { return b[:len(b)-1] },
		"short":      func(b []byte) []byte { return b[:3] },
		"empty":      func([]byte) []byte { return []byte{} },
		"longer":     func(b []byte) []byte { return append(b, 0) },
		"in clear":   func([]byte) []byte { return wire.TypeRequest.Put([]byte("hello")) },
		"accepted":   func([]byte) []byte { return wire.TypeAccept.Put(nil) },
	}
	for name, change := range change {
		for at, which := range []string{"request", "accept"} {
			t.Run(name+"/"+which, func(t *testing.T) {
				onFlavors(t, func(w *world) {
					n := 0
					w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
						if m != cmidtest.MsgSend {
							return b
						}
						if n++; n == at+1 {
							return change(b)
						}
						return b
					})
					if which == "request" {
						w.noConnection()
						return
					}
					server, client := w.farProbe(), w.probe()
					w.listen(server, secured(w))
					client.send(w.rt.CreateID(client.pid, secured(w)), &Dial{Addr: there + ":7471"})
					_, s := next[*ConnectRequest](server)
					server.send(s, &Accept{})
					end := until[*Closed](client)
					if _, ok := end[0].msg.(Failure); !ok || len(end) != 2 {
						w.Errorf("the client gets %v", end)
					}
					for _, err := range []error{end[0].msg.(Failure), end[len(end)-1].msg.(*Closed).Err} {
						var shake *HandshakeError
						if !errors.As(err, &shake) || !errors.Is(err, unix.EACCES) {
							w.Errorf("what has failed is not the handshake: %v", err)
						}
					}
					until[*Closed](server)
				})
			})
		}
	}
}

// A modified or repeated message, or one from another connection, ends the connection, and nothing
// of it is delivered.
func TestMessagesAreTampered(t *testing.T) {
	const at = 5 // the message that is changed
	for name, change := range map[string]func(b []byte, before [][]byte, other [][]byte) []byte{
		"flip":   func(b []byte, _, _ [][]byte) []byte { b[len(b)/2] ^= 4; return b },
		"tag":    func(b []byte, _, _ [][]byte) []byte { b[len(b)-1] ^= 4; return b },
		"cut":    func(b []byte, _, _ [][]byte) []byte { return b[:len(b)-1] },
		"replay": func(_ []byte, before, _ [][]byte) []byte { return before[len(before)-1] },
		"first":  func(_ []byte, before, _ [][]byte) []byte { return before[0] },
		"splice": func(_ []byte, before, other [][]byte) []byte { return other[len(before)] },
		"clear":  func([]byte, [][]byte, [][]byte) []byte { return append(wire.TypeData.Put(nil), "got you"...) },
		"empty":  func([]byte, [][]byte, [][]byte) []byte { return []byte{} },
	} {
		t.Run(name, func(t *testing.T) {
			onSecured(t, func(w *world, secured mode) {
				w.tampered(at, change, secured)
			})
		})
	}
}

// tampered makes two connections, and changes a message of the second.
func (w *world) tampered(at int, change func(b []byte, before, other [][]byte) []byte, secured mode) {
	w.Helper()
	var seen [2][][]byte
	which := 0
	w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
		if m != cmidtest.MsgSend || len(b) != wire.HeaderLen+10+secure.Overhead {
			return b
		}
		clean := bytes.Clone(b)
		if which == 1 && len(seen[1]) == at {
			b = change(b, seen[1], seen[0])
		}
		seen[which] = append(seen[which], clean)
		return b
	})
	other := w.connect(secured(w))
	for range 2 * at {
		other.client.send(other.c, NewSend([]byte("0123456789")))
		other.server.any()
	}
	w.sys.Root.Send(other.listener, &DestroyID{})
	until[*Closed](other.server)
	settle()
	which = 1
	p := w.connect(secured(w))
	for i := range 2 * at {
		p.client.send(p.c, NewSend(fmt.Appendf(nil, "%010d", i)))
		settle()
	}
	for i, g := range until[*Closed](p.server) {
		switch m := g.msg.(type) {
		case *Received:
			if i >= at || g.data != fmt.Sprintf("%010d", i) {
				w.Errorf("message %d is %v", i, g)
			}
		case *Closed:
			var tampered *TamperedError
			if !errors.As(m.Err, &tampered) || !errors.Is(m.Err, unix.EBADMSG) {
				w.Errorf("the end: %v", m.Err)
			}
		}
	}
	until[*Closed](p.client)
	other.client.send(other.c, NewSend([]byte("still there")))
	if g := other.server.any(); g.data != "still there" {
		w.Errorf("the other connection: %v", g)
	}
}

// Whatever byte of a large message is changed while it is read, nothing of it is delivered.
func TestLargeMessagesAreTampered(t *testing.T) {
	const n = 2<<20 + 100
	for _, at := range []int{0, 1<<20 - 1, 1 << 20, n - 1, n, n + secure.Overhead, secure.LargeLen(n) - 1} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			onSecured(t, func(w *world, secured mode) {
				passed := 0
				w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
					if m == cmidtest.MsgReadResponse {
						if at >= passed && at < passed+len(b) {
							b[at-passed] ^= 1
						}
						passed += len(b)
					}
					return b
				})
				p := w.connect(large(secured(w)))
				p.client.send(p.c, NewSend(make([]byte, n)))
				p.client.send(p.c, NewSend([]byte("behind")))
				end := until[*Closed](p.server)
				if k := kinds(end); k != "Disconnected Closed" {
					w.Errorf("the server gets %s", k)
				}
				is(w, end[len(end)-1].msg.(*Closed).Err, unix.EBADMSG)
				until[*Closed](p.client)
			})
		})
	}
}

// hand is a peer that does PSK mode by hand, on a raw identifier.
type hand struct {
	*probe
	id     *actor.PID
	secure *secure.Channel
}

// handshake connects mallory as far as the reply.
func (w *world) handshake(c Credential) *hand {
	w.Helper()
	m := &hand{probe: w.probe()}
	m.id = w.rt.CreateID(m.pid, IDConfig{Raw: true})
	m.send(m.id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
	local, _ := next[*cmid.AddrResolved](m.probe)
	m.send(m.id, &cmid.ResolveRoute{})
	next[*cmid.RouteResolved](m.probe)
	suite := secure.AES256GCM
	b := wire.Hello{Features: uint8(secure.PSKFeatures(suite)), Credits: 2, Eager: kib, MaxMessage: kib}.Put(make([]byte, secure.HintLen+secure.PSKRequestLen))
	binding := secure.Binding{Device: secure.DeviceInfiniBand, Client: local.Local.Addr(), Server: MustAddr(there + ":7471").AddrPort}
	if w.flavor != 0 {
		binding.Device = secure.DeviceIWARP
	}
	client, data, err := secure.NewPSKClient(&c, suite, binding, secure.Hello(b))
	if err != nil {
		w.Fatal(err)
	}
	copy(b[wire.HelloLen+secure.HintLen:], data[:])
	m.send(m.id, &Connect{PrivateData: b})
	est, _ := next[*Established](m.probe)
	m.secure, err = client.Finish(secure.Hello(est.PrivateData), est.PrivateData[wire.HelloLen:wire.HelloLen+secure.PSKReplyLen])
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// say sends a record.
func (m *hand) say(b []byte) {
	sealed, err := m.secure.Seal.Seal(nil, b)
	if err != nil {
		m.tb.Fatal(err)
	}
	m.send(m.id, NewSend(sealed))
}

// A peer that has the key, and does not wait until it is accepted.
func TestPeerDoesNotWait(t *testing.T) {
	data := append(wire.TypeData.Put(nil), "early"...)
	for name, tt := range map[string]struct {
		says  [][]byte
		heard bool // whether the owner was notified
	}{
		"data first":        {[][]byte{data}, false},
		"accept first":      {[][]byte{wire.TypeAccept.Put(nil)}, false},
		"data next":         {[][]byte{wire.TypeRequest.Put(nil), data}, true},
		"goodbye next":      {[][]byte{wire.TypeRequest.Put(nil), wire.TypeGoodbye.Put(nil)}, true},
		"two requests":      {[][]byte{wire.TypeRequest.Put(nil), wire.TypeRequest.Put(nil)}, true},
		"key update next":   {[][]byte{wire.TypeRequest.Put(nil), wire.TypeKeyUpdate.Put(nil)}, true},
		"two probes":        {[][]byte{wire.TypeRequest.Put(nil), wire.TypeProbe.Put(nil), wire.TypeProbe.Put(nil)}, true},
		"a long request":    {[][]byte{wire.TypeRequest.Put(make([]byte, 256))}, false},
		"an offer at once":  {[][]byte{append(wire.TypeOffer.Put(nil), make([]byte, 24)...)}, false},
		"nothing in record": {[][]byte{{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				server := w.farProbe()
				w.listen(server, secured(w))
				m := w.handshake(credential("alice", 1))
				for _, b := range tt.says {
					m.say(b)
				}
				until[*Closed](m.probe)
				settle()
				if !tt.heard {
					server.quiet()
					return
				}
				for len(server.got) > 0 {
					switch e := server.any().msg.(type) {
					case *ConnectRequest, *Disconnected:
					case *Closed:
						is(w, e.Err, unix.EPROTO)
					default:
						w.Errorf("the owner gets %T", e)
					}
				}
			})
		})
	}
}

// Messages that a secured connection must not carry, later.
func TestSecuredPeerBreaksTheProtocol(t *testing.T) {
	offer := append(wire.TypeOffer.Put(nil), make([]byte, wire.OfferLen)...)
	for name, says := range map[string][]byte{
		"another accept": wire.TypeAccept.Put(nil), "another request": wire.TypeRequest.Put(nil), "an offer": offer,
		"an offer numbered 0":  append(wire.TypeOffer.Put(nil), 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
		"a key update at once": wire.TypeKeyUpdate.Put(nil), "nothing": {}, "unknown": wire.Type(11).Put(nil),
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				server := w.farProbe()
				w.listen(server, secured(w))
				m := w.handshake(credential("alice", 1))
				m.say(wire.TypeRequest.Put(nil))
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				m.say(append(wire.TypeData.Put(nil), "fine"...))
				if g := server.any(); g.data != "fine" {
					w.Fatalf("got %v", g)
				}
				m.say(says)
				end := until[*Closed](server)
				if c := end[len(end)-1].msg.(*Closed); c.Err == nil || kinds(end) != "Disconnected Closed" {
					w.Errorf("the end: %v", end)
				}
				want := error(unix.EPROTO)
				if name == "an offer numbered 0" {
					want = unix.EBADMSG
				}
				is(w, end[0].msg.(*Disconnected).Err, want)
				until[*Closed](m.probe)
			})
		})
	}
}

// Peers that begin a handshake and do not go on take a bounded number of places, for a bounded
// time, and one address does not take them all.
func TestHalfOpenHandshakes(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.f.Host("third").AddDevice("mem2", "10.0.0.9")
		third := w.open(w.f.Host("third").Driver(), Config{})
		server := w.farProbe()
		lis := w.listen(server, secured(w))
		mallory := w.probe()
		b := wire.Hello{Features: uint8(secure.FeaturePSK), Credits: 2, Eager: kib, MaxMessage: kib}.Put(make([]byte, secure.HintLen+secure.PSKRequestLen))
		_, data, err := secure.NewPSKClient(&Credential{Identity: "alice", Key: credential("alice", 1).Key}, secure.AES256GCM, secure.Binding{}, secure.Hello(b))
		if err != nil {
			w.Fatal(err)
		}
		copy(b[wire.HelloLen+secure.HintLen:], data[:])
		for range 1000 {
			mallory.send(w.rt.CreateID(mallory.pid, IDConfig{Raw: true}), &Dial{Addr: there + ":7471", PrivateData: b})
		}
		open, refused := 0, 0
		for open+refused < 1000 {
			switch e := mallory.any().msg.(type) {
			case *Established:
				open++
			case *Rejected:
				refused++
			case *Closed: // of those that were refused
			default:
				w.Fatalf("mallory gets %T", e)
			}
		}
		honest := newProbe(w, w.sys, third.OnLoop(), nil)
		honest.send(third.CreateID(honest.pid, secured(w)), &Dial{Addr: there + ":7471"})
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
		for _, i := range w.far.Inspect() {
			if i.PID.Equal(lis) && (i.Listener.Pending != 0 || i.Listener.Refused.Unauthenticated != 1000) {
				w.Errorf("the listener's counts: %+v", i.Listener)
			}
		}
		if n := w.far.count.Load(); n != 2 {
			w.Errorf("%d identifiers are left, want the listener and one connection", n)
		}
	})
}

// Neither logs nor errors show a key.
func TestKeysAreNotPrinted(t *testing.T) {
	c := credential("alice", 'K')
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", &c), fmt.Sprintf("%x", c)} {
		if strings.Contains(s, "KLMN") || strings.Contains(s, "4b4c") {
			t.Errorf("%q shows the key", s)
		}
	}
}

// A runtime is shut down while peers are in the middle of the handshake, or wait for an owner.
func TestShutdownDuringHandshakes(t *testing.T) {
	onFlavors(t, func(w *world) {
		server := w.farProbe()
		w.listen(server, secured(w))
		w.handshake(credential("alice", 1))
		m := w.handshake(credential("alice", 1))
		m.say(wire.TypeRequest.Put(nil))
		next[*ConnectRequest](server)
		client := w.probe()
		w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
			if m == cmidtest.MsgREP {
				return nil
			}
			return b
		})
		client.send(w.rt.CreateID(client.pid, secured(w)), &Dial{Addr: there + ":7471"})
		settle()
	})
}
