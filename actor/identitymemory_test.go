package actor

import (
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// receives returns how much of a loop's memory the peer of a connection with the defaults may fill.
func (w *world) receives(rt *Runtime) (n int) {
	w.Helper()
	w.onLoop(rt, func(l *loop) {
		for _, o := range l.Persons {
			n += o.Receives
		}
	})
	return n
}

// keeping accepts every peer, and retains every message.
func keeping(kept *[]*Received) func(actor.Context) {
	return func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *ConnectRequest:
			ctx.Respond(&Accept{})
		case *Received:
			*kept = append(*kept, m.Retain())
		}
	}
}

// All connections of an identity together may be promised as much of a loop's memory as its limit.
// Others are not touched by that, and connections that have ended make room.
func TestMemoryOfAnIdentity(t *testing.T) {
	onAllKinds(t, func(w *world) {
		limit := 1 // a connection it may have in any case
		w.accepter(peopled(w, func(identity string) PeerLimits {
			if identity == "alice" {
				return PeerLimits{Memory: limit}
			}
			return PeerLimits{}
		}))
		first, _ := w.comes("alice")
		one := w.receives(w.far)
		for range 5 {
			w.sys.Root.Send(first, NewSend([]byte("this is consumed")))
		}
		settle()
		if n := w.receives(w.far); n != one {
			w.Errorf("%d bytes count where it was %d, and nothing is retained", n, one)
		}
		if n := w.crowd("alice", 10); one < 32<<10 || n != 0 {
			w.Errorf("alice has %d bytes and %d more connections within a limit of a byte", one, n)
		}
		limit = 4*one + one/2
		if n := 1 + w.crowd("alice", 10); n != 4 {
			w.Errorf("alice has %d connections where there is memory for 4", n)
		}
		if n := w.crowd("bob", 10); n != 10 {
			w.Errorf("bob has %d connections beside her", n)
		}
		w.sys.Root.Send(first, &Close{})
		settle()
		time.Sleep(time.Second)
		if n := w.crowd("alice", 10); n != 1 {
			w.Errorf("alice gets %d more when one has ended", n)
		}
	})
}

// Receives that become large for a peer count with their size, and stay small if its identity may
// have no more. Its large messages are offered then, and arrive. In the end nothing counts.
func TestLargeReceivesOfAnIdentity(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		limit := 2 * largeBytes
		server := w.farProbe()
		w.listen(server, peopled(w, func(string) PeerLimits { return PeerLimits{Memory: limit} }))
		var all []pair
		for i, large := range []bool{true, false} {
			p := pair{client: w.probe(), server: server}
			p.c = w.rt.CreateID(p.client.pid, connecting(w, "alice"))
			p.client.send(p.c, &Dial{Addr: there + ":7471"})
			_, p.s = next[*ConnectRequest](server)
			server.send(p.s, &Accept{})
			next[*Established](server)
			next[*Established](p.client)
			w.exchange(p.client, p.c, server, 100, 8<<10)
			if n := w.offered(w.rt, p.c); n == 0 || (n == 100) == large {
				w.Errorf("connection %d: %d of 100 messages were offered", i, n)
			}
			if n := w.receives(w.far); n < largeBytes || n > limit {
				w.Errorf("connection %d: %d bytes count, within %d", i, n, limit)
			}
			all = append(all, p)
		}
		time.Sleep(time.Hour)
		if n := w.receives(w.far); n > 2*idleBytes {
			w.Errorf("%d bytes count after an hour of silence", n)
		}
		for _, p := range all {
			w.closes(p)
		}
		settle()
		if n := w.receives(w.far); n != 0 {
			w.Errorf("%d bytes count in the end", n)
		}
	})
}

// What counts for an identity follows its receives when they become small again: also of a
// connection that shares its protection domain with others, and of one that began with those of a
// handshake in TLS mode.
func TestSmallReceivesOfAnIdentity(t *testing.T) {
	for name, tt := range map[string]struct {
		made  func(w *world) (server, client IDConfig)
		sizes []int // of the messages of each connection
	}{
		"domain": {func(w *world) (server, client IDConfig) {
			server = peopled(w, nil)
			server.Domain = new(Domain)
			return server, connecting(w, "alice")
		}, []int{8 << 10, 8 << 10, 100}},
		"tls": {func(w *world) (server, client IDConfig) {
			cfg := IDConfig{Security: mtls(w)}
			return cfg, cfg
		}, []int{100}},
	} {
		t.Run(name, func(t *testing.T) {
			onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
				cfg, own := tt.made(w)
				server := w.farProbe()
				w.listen(server, cfg)
				for _, size := range tt.sizes {
					p := pair{client: w.probe(), server: server}
					p.c = w.rt.CreateID(p.client.pid, own)
					p.client.send(p.c, &Dial{Addr: there + ":7471"})
					_, p.s = next[*ConnectRequest](server)
					server.send(p.s, &Accept{})
					next[*Established](server)
					next[*Established](p.client)
					w.exchange(p.client, p.c, server, 100, size)
				}
				time.Sleep(time.Hour)
				if n := w.receives(w.far); n > len(tt.sizes)*idleBytes {
					w.Errorf("%d bytes count after an hour of silence", n)
				}
			})
		})
	}
}

// A peer that fills its receives and comes back again and again, while the owner retains all its
// messages, has no more of the memory than one that stays.
func TestMemoryOfAnIdentityThatComesBack(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const each, most = 8, 3 // messages of a connection, and connections
		limit := 0
		server := w.farProbe()
		cfg := peopled(w, func(string) PeerLimits { return PeerLimits{Memory: limit} })
		cfg.Credits = each
		w.listen(server, cfg)
		var kept []*Received
		server.reactWith(keeping(&kept))
		come := 0
		for ; come < 20; come++ {
			client := w.probe()
			c := w.rt.CreateID(client.pid, connecting(w, "alice"))
			client.send(c, &Dial{Addr: there + ":7471"})
			if _, ok := client.any().msg.(*Established); !ok {
				break
			}
			if limit == 0 {
				limit = most*w.receives(w.far) + 100
			}
			for range each {
				client.send(c, NewSend([]byte("keep this")))
				settle() // each in a separate Send
			}
			client.send(c, &DestroyID{})
			until[*Closed](client)
			settle()
			time.Sleep(time.Second)
		}
		// on the kernel's devices some receives are for what no owner gets
		if come < most || come > 3*most {
			w.Errorf("alice comes %d times, want some %d", come, most)
		}
		if n := w.receives(w.far); n == 0 || n > limit {
			w.Errorf("%d bytes of hers are retained, with a limit of %d", n, limit)
		}
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
		})
		if n := w.receives(w.far); n != 0 {
			w.Errorf("%d bytes count when nothing is left of her", n)
		}
	})
}

// Large messages of an identity's connections wait at their senders when they would be more than
// its limit: at least one may be here, and others' are not in their way.
func TestLargeMessagesOfAnIdentity(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const size = 1 << 20
		limit := 0 // none
		server := w.farProbe()
		cfg := peopled(w, func(identity string) PeerLimits {
			if identity == "alice" {
				return PeerLimits{Memory: limit}
			}
			return PeerLimits{Memory: 1}
		})
		cfg.MaxMessage = 2 * size
		w.listen(server, cfg)
		var kept []*Received
		over := false
		server.reactWith(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Received:
				if !over {
					kept = append(kept, m.Retain())
				}
			}
		})
		come := func(name string) func() {
			client, own := w.probe(), connecting(w, name)
			own.MaxMessage = 2 * size
			id := w.rt.CreateID(client.pid, own)
			client.send(id, &Dial{Addr: there + ":7471"})
			next[*Established](client)
			return func() {
				client.send(id, NewSend(make([]byte, size)))
				settle()
			}
		}
		has := func(why string, want int) {
			w.Helper()
			n := 0
			w.onLoop(w.far, func(*loop) { n = len(kept) })
			if n != want {
				w.Errorf("%s: %d messages are here, want %d", why, n, want)
			}
		}
		alices := []func(){come("alice"), come("alice")}
		limit = 3*w.receives(w.far)/2 + 5*size/2
		for _, send := range append(alices, come("alice")) {
			send()
		}
		has("room for two", 2)
		bob := come("bob") // bob's limit is one byte
		bob()
		bob()
		has("one of bob's besides", 3)
		w.onLoop(w.far, func(*loop) {
			kept[0].Release()
			kept = slices.Delete(kept, 0, 1)
		})
		settle()
		has("one of alice's was released, and her next is here", 3)
		for _, send := range alices {
			send()
		}
		has("she sends two more", 3)
		limit = 0
		come("alice")
		settle()
		has("she has no limit any more", 5)
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
			over = true
		})
	})
}

// A large message that waits because of its identity's use of memory is read when a connection of
// the identity has ended, also one that leaves nothing behind, and while the others keep their
// memory.
func TestLargeMessageWaitsForAConnectionsEnd(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const size = 1 << 20
		limit := 0 // none
		server := w.farProbe()
		cfg := peopled(w, func(string) PeerLimits { return PeerLimits{Memory: limit} })
		cfg.MaxMessage = 2 * size
		w.listen(server, cfg)
		var kept []*Received
		server.reactWith(keeping(&kept))
		come := func() pair {
			p, own := pair{client: w.probe()}, connecting(w, "alice")
			own.MaxMessage = 2 * size
			p.c = w.rt.CreateID(p.client.pid, own)
			p.client.send(p.c, &Dial{Addr: there + ":7471"})
			next[*Established](p.client)
			return p
		}
		has := func(when string, want int) {
			w.Helper()
			n := 0
			w.onLoop(w.far, func(*loop) { n = len(kept) })
			if n != want {
				w.Errorf("%s: %d messages are here, want %d", when, n, want)
			}
		}
		send := func(p pair) {
			p.client.send(p.c, NewSend(make([]byte, size)))
			settle()
		}
		a, b, idle := come(), come(), come()
		send(a)
		each, large := w.receives(w.far)/3, 0
		w.onLoop(w.far, func(l *loop) {
			for _, o := range l.Persons {
				large += o.Large
			}
		})
		limit = 2*large + 4*each - each/2
		come()
		send(b)
		has("before", 1)
		idle.client.send(idle.c, &Close{})
		until[*Closed](idle.client)
		settle()
		has("when a connection has ended", 2)
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
		})
	})
}
