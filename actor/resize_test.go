package actor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// What receives take when they are small, and large, by default.
const (
	idleBytes  = 64 << 10
	largeBytes = 48 * (datapath.EagerPosted + 64)
)

// registered returns how much memory a runtime's only loop has registered to receive into.
func (w *world) registered(rt *Runtime) (n int) {
	w.Helper()
	settle()
	w.onLoop(rt, func(l *loop) { n = rt.cfg.Limits.ReceiveMemory - l.RecvBudget.Free })
	return n
}

// offered returns how many messages of an identifier of rt were offered so far.
func (w *world) offered(rt *Runtime, id *actor.PID) (sent uint64) {
	w.onLoop(rt, func(l *loop) { sent = w.conn(l, id).Traffic().LargeSent })
	return sent
}

// exchange sends n messages of that size from a side, each once the last has come, and checks them.
func (w *world) exchange(from *probe, id *actor.PID, to *probe, n, size int) {
	w.Helper()
	for i := range n {
		from.send(id, NewSend(pattern(size, i)))
		if g := to.any(); g.data != string(pattern(size, i)) {
			w.Fatalf("message %d of %d bytes is %.200v", i, size, g)
		}
		settle()
	}
}

// closes ends a connection in order and fails if it has ended in another way, but that a device
// without room has sent no goodbye.
func (w *world) closes(p pair) {
	w.Helper()
	p.client.send(p.c, &Close{})
	for _, side := range []*probe{p.client, p.server} {
		end := until[*Closed](side)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil && !errors.Is(c.Err, ErrPeerLost) || c.Unknown+c.Unsent > 0 {
			w.Errorf("closed: %v", c)
		}
	}
}

// A side that was asked for a connection begins with small receives. A peer with messages for large
// ones gets them, without a message lost, out of order or refused, and afterwards nothing is
// offered. When it has none for a while they are small again, on both sides.
func TestReceivesGrowAndShrink(t *testing.T) {
	for name, made := range map[string]func(*world) IDConfig{
		"plain": func(*world) IDConfig { return IDConfig{} },
		"psk":   func(w *world) IDConfig { return secured(w) },
		"tls":   func(w *world) IDConfig { return IDConfig{Security: mtls(w)} },
	} {
		t.Run(name, func(t *testing.T) {
			onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
				p := w.connect(made(w))
				if n := w.registered(w.far); n > idleBytes && name != "tls" {
					w.Errorf("the side that was asked begins with %d bytes", n)
				}
				for round := range 2 {
					before := w.offered(w.rt, p.c)
					w.exchange(p.client, p.c, p.server, 100, 8<<10)
					if n := w.offered(w.rt, p.c) - before; n == 0 || n > 50 {
						w.Errorf("round %d: %d of 100 messages were offered, want those before the receives were large", round, n)
					}
					if n := w.registered(w.far); n < largeBytes {
						w.Errorf("round %d: with large receives there are %d bytes", round, n)
					}
					w.exchange(p.server, p.s, p.client, 100, 8<<10)
					time.Sleep(time.Hour)
					for _, rt := range []*Runtime{w.rt, w.far} {
						if n := w.registered(rt); n > idleBytes {
							w.Errorf("round %d: after an hour of silence there are %d bytes", round, n)
						}
					}
				}
				w.closes(p)
				settle()
				for _, rt := range []*Runtime{w.rt, w.far} {
					if n := w.registered(rt); n > 0 {
						w.Errorf("%d bytes are left behind", n)
					}
				}
			})
		})
	}
}

// Where there is no memory for large receives they stay small, and every message comes, in order.
func TestReceivesStaySmallWithoutMemory(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		client, server := w.probe(), w.farProbe()
		w.listen(server)
		id := w.rt.CreateID(client.pid, IDConfig{Credits: 1})
		client.send(id, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
		w.exchange(client, id, server, 100, 8<<10)
		if n := w.offered(w.rt, id); n != 100 {
			w.Errorf("%d of 100 messages were offered", n)
		}
		w.closes(pair{client: client, server: server, c: id, s: s})
	}, Config{Limits: Limits{ReceiveMemory: 1 << 20}})
}

// Connections that have got large receives leave room for others to begin, also when they are busy.
func TestLargeReceivesLeaveRoom(t *testing.T) {
	const limit = 16 << 20
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		server := w.farProbe()
		server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				ctx.Respond(&Accept{})
			}
		})
		w.listen(server)
		begin := func() pair {
			p := pair{client: w.probe(), server: server}
			p.c = w.rt.CreateID(p.client.pid, IDConfig{Credits: 1})
			p.client.send(p.c, &Dial{Addr: there + ":7471"})
			next[*Established](p.client)
			settle()
			for len(server.got) > 0 {
				<-server.got
			}
			return p
		}
		grown := 0
		for range 12 {
			p := begin()
			before := w.registered(w.far)
			w.exchange(p.client, p.c, p.server, 100, 4<<10)
			if w.registered(w.far) > before+largeBytes/2 {
				grown++
			}
		}
		// of one address, which may have half of the rest
		if most := limit / 2 * 3 / 4 / 2 / largeBytes; grown == 0 || grown > most+1 {
			w.Errorf("%d connections got large receives, want at most %d", grown, most+1)
		}
		for range 12 {
			p := begin()
			w.exchange(p.client, p.c, p.server, 1, 100)
		}
	}, Config{Limits: Limits{ReceiveMemory: limit}})
}

// Conversations of any sizes, with silences in which receives become small, with Writes that use up
// receives, with owners that retain and devices without room: every message comes, as it was sent.
func TestReceivesOfAnyConversation(t *testing.T) {
	for seed := range uint64(30) {
		onKernelLike(t, kernelLike{fail: []int{0, 3}[seed%2]}, func(w *world, _, _ *kernelLike) {
			rng := rand.New(rand.NewPCG(seed, 8))
			w.f.Reorder(rng.IntN(2) == 0)
			cfg := IDConfig{Credits: 1 + rng.IntN(12), MaxMessage: 1 << (10 + rng.IntN(9))}
			if seed%3 == 0 {
				cfg.Security = psk(w)
			}
			anyConversation(w, rng, w.connect(cfg), cfg.MaxMessage)
		}, Config{Limits: Limits{SendQueue: 1 << 20, ReceiveMemory: 8 << 20}})
	}
}

func anyConversation(w *world, rng *rand.Rand, p pair, most int) {
	type side struct {
		*probe
		id         *actor.PID
		sent, came int
		wrong      string
	}
	sides := [2]*side{{probe: p.client, id: p.c}, {probe: p.server, id: p.s}}
	size := func(n int) int { return (n * n * 977) % (most + 1) }
	for _, s := range sides {
		react := rand.New(rand.NewPCG(rng.Uint64(), 4))
		s.reactWith(func(ctx actor.Context) {
			m, ok := ctx.Message().(*Received)
			if !ok {
				return
			}
			if want := pattern(size(s.came), s.came); string(m.Data) != string(want) && s.wrong == "" {
				s.wrong = fmt.Sprintf("message %d has %d bytes, want %d", s.came, len(m.Data), len(want))
			}
			s.came++
			if react.IntN(3) == 0 {
				time.AfterFunc(time.Duration(react.IntN(5))*time.Millisecond, m.Retain().Release)
			}
		})
	}
	for range 60 {
		s := sides[rng.IntN(2)]
		for range rng.IntN(12) {
			s.send(s.id, NewSend(pattern(size(s.sent), s.sent)))
			s.sent++
		}
		switch rng.IntN(8) {
		case 0:
			time.Sleep(time.Duration(rng.IntN(400)) * time.Second)
		case 1:
			time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
		default:
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
		}
	}
	time.Sleep(10 * time.Second)
	w.closes(p)
	settle()
	for _, rt := range []*Runtime{w.rt, w.far} {
		if n, _ := w.budgets(rt); n > 0 {
			w.Errorf("%d bytes are left behind", n)
		}
	}
	for i, s := range sides {
		if other := sides[1-i]; s.wrong != "" || s.came != other.sent {
			w.Errorf("side %d got %d of %d messages; %s", i, s.came, other.sent, s.wrong)
		}
	}
}

// A Write with an immediate counts among what uses up receives.
func TestReceivesGrowBehindImmediates(t *testing.T) {
	onImmediates(t, func(w *world) {
		g := w.granted(64)
		for round := range 3 {
			for range 30 {
				g.client.send(g.c, &Write{Memory: g.near, Length: 8, Key: g.key, HasImm: true})
				next[*Received](g.server)
				next[*WriteDone](g.client)
			}
			before := w.offered(w.rt, g.c)
			w.exchange(g.client, g.c, g.server, 100, 16<<10)
			if n := w.offered(w.rt, g.c) - before; n > 50 {
				w.Errorf("round %d: %d of 100 messages were offered", round, n)
			}
			time.Sleep(20 * time.Second)
		}
		w.closes(g.pair)
	})
}

// peerOf dials the server with a hello of that version and returns the server's hello.
func (w *world) peerOf(server *probe, version byte) (p *probe, id, s *actor.PID, h wire.Hello) {
	w.Helper()
	p = w.probe()
	b := wire.Hello{Credits: 64, Eager: kib, MaxMessage: 64 << 10}.Put(nil)
	b[2] = version
	id = w.rt.CreateID(p.pid, IDConfig{Raw: true, MaxMessage: 64 << 10, Credits: 256, Memory: 64 << 10})
	p.send(id, &Dial{Addr: there + ":7471", PrivateData: b})
	_, s = next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	e, _ := next[*Established](p)
	h, _, ok := wire.ParseHello(e.PrivateData, true)
	if !ok {
		w.Fatalf("%x is no hello", e.PrivateData)
	}
	return p, id, s, h
}

// change returns a message about receives.
func change(flags byte, r wire.Receives) *Send {
	b := make([]byte, wire.HeaderLen+wire.ReceivesLen)
	wire.Header{Type: wire.TypeReceives, Flags: flags}.Put(b)
	r.Put(b[wire.HeaderLen:])
	return NewSend(b)
}

// A peer's statements about its receives count for its own connection only, and decide nothing but
// whether a message is offered. An illegal statement ends its connection.
func TestLiesAboutReceives(t *testing.T) {
	for name, tt := range map[string]struct {
		say     []*Send
		offered bool // a message of 2 KiB
		over    bool
	}{
		"nothing":           {nil, true, false},
		"at once":           {[]*Send{change(0, wire.Receives{Size: 4 << 10})}, false, false},
		"since long":        {[]*Send{change(0, wire.Receives{From: 1<<32 - 100, Size: 4 << 10})}, false, false},
		"for later":         {[]*Send{change(0, wire.Receives{From: 1000, Size: 4 << 10})}, true, false},
		"never":             {[]*Send{change(0, wire.Receives{From: 1 << 30, Size: 4 << 10})}, true, false},
		"more than we send": {[]*Send{change(0, wire.Receives{Size: 1<<32 - 1})}, false, false},
		"nothing at all":    {[]*Send{change(0, wire.Receives{})}, true, true},
		"too little":        {[]*Send{change(0, wire.Receives{Size: 1<<10 - 1})}, true, true},
		"twice":             {[]*Send{change(0, wire.Receives{Size: 4 << 10}), change(0, wire.Receives{Size: 1 << 10})}, true, true},
		"an answer to none": {[]*Send{change(wire.Resized, wire.Receives{Size: 4 << 10})}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []byte{4, 5} {
				onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
					server := w.farProbe()
					w.listen(server)
					g := w.connectTo(server)
					next[*Established](server)
					p, id, s, _ := w.peerOf(server, version)
					for _, m := range tt.say {
						p.send(id, NewSend(m.Bytes()))
					}
					settle()
					if tt.over {
						end := until[*Closed](server)
						is(w, end[len(end)-1].msg.(*Closed).Err, unix.EPROTO)
					} else {
						server.send(s, NewSend(pattern(2<<10, 1)))
						settle()
						first := p.any()
						if typ := wire.Type(first.data[0]); (typ == wire.TypeOffer) != tt.offered {
							w.Errorf("version %d: a message of 2 KiB came as type %d", version, typ)
						}
					}
					g.client.send(g.c, NewSend([]byte("still here")))
					for {
						if m := server.any(); m.sender.Equal(g.s) {
							if m.data != "still here" {
								w.Errorf("the other connection got %v", m)
							}
							break
						}
					}
				})
			}
		})
	}
}

// A peer is granted small receives at first. One that serves no Reads is granted large ones from
// the beginning, and is never notified of a change.
func TestReceivesOfThoseWhoCannotOffer(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		server := w.farProbe()
		w.listen(server)
		p, id, _, h := w.peerOf(server, 4)
		if h.Eager != datapath.LeastPosted {
			w.Errorf("receives of %d bytes are granted", h.Eager)
		}
		time.Sleep(10 * time.Second)
		settle()
		if len(p.got) > 0 {
			w.Errorf("the peer got %v", <-p.got)
		}
		p.send(id, &DestroyID{})
		until[*Closed](p)
		until[*Closed](server)
		client := w.probe()
		id = w.rt.CreateID(client.pid, IDConfig{})
		client.send(id, &Dial{Addr: there + ":7471", Param: &ConnParam{InitiatorDepth: 4, RetryCount: 7, RNRRetryCount: 7}})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		if e, _ := next[*Established](client); e.MaxMessage != datapath.EagerPosted {
			w.Errorf("a side that serves no Reads may send %d bytes", e.MaxMessage)
		}
		w.exchange(client, id, server, 60, datapath.EagerPosted)
	})
}

// Until a peer has acknowledged smaller receives it may send messages for the larger ones: none of
// them is replaced before. After the acknowledgement, they are.
func TestReceivesShrinkWhenThePeerKnows(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		old, client := w.farProbe(), w.probe()
		w.listen(old, IDConfig{Raw: true, MaxMessage: 64 << 10, Credits: 256})
		id := w.rt.CreateID(client.pid, IDConfig{})
		client.send(id, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](old)
		old.send(s, &Accept{PrivateData: wire.Hello{Credits: 64, Eager: kib, MaxMessage: 64 << 10}.Put(nil)})
		next[*Established](old)
		next[*Established](client)
		message := func(typ wire.Type, flags uint8, n int) *Send {
			m := NewSendBuffer(wire.HeaderLen + n)
			wire.Header{Type: typ, Flags: flags}.Put(m.Bytes())
			return m
		}
		notified := func() (all int) {
			for settle(); len(old.got) > 0; settle() {
				switch m := []byte((<-old.got).data); wire.Type(m[0]) {
				case wire.TypeReceives:
					all++
				case wire.TypeProbe:
					old.send(s, message(wire.TypeAnswer, 0, 0))
				}
			}
			return all
		}
		changes := 0
		for range 10 {
			time.Sleep(5 * time.Second)
			changes += notified()
		}
		if changes != 1 {
			w.Fatalf("in a minute of silence the peer was notified %d times", changes)
		}
		for i := range 200 {
			old.send(s, message(wire.TypeData, 0, 8<<10))
			if g := client.any(); len(g.data) != 8<<10 {
				w.Fatalf("message %d is %.100v", i, g)
			}
		}
		if n := w.registered(w.rt); n < largeBytes || n > largeBytes+kib {
			w.Errorf("before the peer has answered there are %d bytes", n)
		}
		for range 60 {
			old.send(s, message(wire.TypeData, wire.Resized, 0))
			client.any()
		}
		if n := w.registered(w.rt); n > idleBytes {
			w.Errorf("when the peer has answered there are %d bytes", n)
		}
	})
}

// offersNothing connects p by hand to server, which serves no Reads, so that it can offer
// nothing.
func (w *world) offersNothing(p, server *probe) (id, accepted *actor.PID) {
	w.Helper()
	hello := wire.Hello{Credits: 64, Eager: 4 * kib, MaxMessage: 64 << 10}.Put(nil)
	id = w.rt.CreateID(p.pid, IDConfig{Raw: true, MaxMessage: 64 << 10, Credits: 64})
	p.send(id, &Dial{Addr: there + ":7471", PrivateData: hello})
	_, accepted = next[*ConnectRequest](server)
	server.send(accepted, &Accept{Param: &ConnParam{InitiatorDepth: 4, RetryCount: 7, RNRRetryCount: 7}})
	return id, accepted
}

// A side that can offer nothing sends messages up to the size of the peer's receives, also when
// these become larger only later.
func TestReceivesGrowForWhoCannotOffer(t *testing.T) {
	for name, from := range map[string]uint32{"at once": 0, "later": 5} {
		t.Run(name, func(t *testing.T) {
			onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
				server, p := w.farProbe(), w.probe()
				w.listen(server)
				id, s := w.offersNothing(p, server)
				next[*Established](server)
				next[*Established](p)
				p.send(id, change(0, wire.Receives{From: from, Size: 8 * kib}))
				settle()
				for range from {
					server.send(s, NewSend(nil))
					p.any()
				}
				server.send(s, NewSend(pattern(8*kib, 1)))
				if g := p.any(); len(g.data) != wire.HeaderLen+8*kib {
					w.Errorf("a message of 8 KiB came as %d bytes", len(g.data))
				}
			})
		})
	}
}

// A peer's receives may not become smaller for a side that can offer nothing.
func TestReceivesShrinkForWhoCannotOffer(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		server, p := w.farProbe(), w.probe()
		w.listen(server)
		id, _ := w.offersNothing(p, server)
		if e, _ := next[*Established](server); e.MaxMessage != 4*kib {
			w.Errorf("a side that offers nothing may send %d bytes", e.MaxMessage)
		}
		p.send(id, change(0, wire.Receives{Size: 2 * kib}))
		end := until[*Closed](server)
		is(w, end[len(end)-1].msg.(*Closed).Err, unix.EPROTO)
	})
}

// Connections of a Domain have private receives in it: one that changes them, or ends while they
// change, does not affect the others, and leaves nothing behind.
func TestReceivesOfADomain(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		d := shareDomain(w, w.far, w.rt, there+":7471", there+":7472", IDConfig{})
		all := []pair{d.join(), d.join(), d.join(), d.join()}
		w.exchange(all[0].client, all[0].c, d.server, 1, 100)
		small := w.registered(w.far)
		for len(all) > 0 {
			for i, p := range all { // the first gets some of both sizes
				w.exchange(p.client, p.c, p.server, 10+20*i, 8<<10)
			}
			p := all[0]
			for range 5 {
				p.client.send(p.c, NewSend(pattern(8<<10, 0)))
			}
			p.client.send(p.c, &DestroyID{})
			until[*Closed](p.client)
			until[*Closed](d.server)
			for all = all[1:]; len(d.server.got) > 0; {
				<-d.server.got
			}
			for _, p := range all {
				w.exchange(p.client, p.c, p.server, 60, 8<<10)
			}
			time.Sleep(time.Hour)
			if n := w.registered(w.far); n > small {
				w.Errorf("%d bytes for %d connections after an hour of silence, where it was %d for 4", n, len(all), small)
			}
		}
		settle()
		if n := w.registered(w.far); n > 0 {
			w.Errorf("%d bytes are left behind", n)
		}
	})
}

// Memory of connections of a Domain that have ended is not kept for others of it: with many credits
// the receives of one connection are 17 MiB, which would be unused until another one joins.
func TestReceivesOfADomainGoWithTheirConnections(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		d := shareDomain(w, w.far, w.rt, there+":7471", there+":7472", IDConfig{Credits: 1024})
		stays := d.join()
		w.exchange(stays.client, stays.c, stays.server, 1, 100)
		one := w.registered(w.far)
		var all []pair
		for range 3 {
			p := d.join()
			w.exchange(p.client, p.c, p.server, 100, 8<<10)
			all = append(all, p)
		}
		if n := w.registered(w.far) - one; n < 3*1024*datapath.EagerPosted {
			w.Fatalf("three connections have receives of %d bytes: they are not large", n)
		}
		for _, p := range all {
			w.closes(p)
		}
		// a message that was offered leaves its region
		if n := w.registered(w.far); n > one+idleBytes {
			w.Errorf("%d bytes are left of connections that have ended, besides the %d of another one", n-one, one)
		}
	})
}
