package actor

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	mem "github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// onAllKinds runs test on the twin as it is, and as a device of the kernel's that takes its time.
func onAllKinds(t *testing.T, test func(w *world), opts ...Config) {
	t.Helper()
	t.Run("asks", func(t *testing.T) { onFlavors(t, test, opts...) })
	t.Run("reserves", func(t *testing.T) {
		onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) { test(w) }, opts...)
	})
}

// pattern returns n bytes that differ from message to message.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(n), byte(n >> 8)})
	_, _ = r.Read(b) // never fails
	return b
}

// budgets returns the bytes of a loop's memory for large messages: those received, and those for
// the peer to read.
func (w *world) budgets(rt *Runtime) (in, out int) {
	w.onLoop(rt, func(l *loop) {
		l.RecvBudget.Reclaim()
		l.HeldBudget.Reclaim()
		in, out = rt.cfg.Limits.ReceiveMemory-l.RecvBudget.Free, rt.cfg.Limits.SendMemory-l.HeldBudget.Free
	})
	return in, out
}

// Sizes around the eager limit and around the maximum, one by one and all together: same bytes,
// same order.
func TestSizes(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const eager, most = 2 << 10, 3<<20 + 1<<10
		p := w.connect(IDConfig{MaxMessage: most, Credits: 8, eager: eager})
		sizes := []int{0, 1, eager - 1, eager, eager + 1, 4096, 4097, datapath.ReadPart - 1, datapath.ReadPart, datapath.ReadPart + 1, most - 1, most, 5, most, 7}
		for _, all := range []bool{false, true} {
			for i, n := range sizes {
				p.client.send(p.c, NewSend(pattern(n, i)))
				if !all {
					if g := p.server.any(); g.data != string(pattern(n, i)) {
						w.Fatalf("%d bytes came as %d others", n, len(g.data))
					}
				}
			}
			for i, n := range sizes {
				if !all {
					break
				}
				if g := p.server.any(); g.data != string(pattern(n, i)) {
					w.Fatalf("message %d of %d bytes came as %d others", i, n, len(g.data))
				}
			}
		}
		p.client.send(p.c, NewSend(make([]byte, most+1)))
		f, _ := next[*SendFailed](p.client)
		is(w, f, ErrTooLarge)
		p.client.send(p.c, &Close{})
		end := until[*Closed](p.client)
		c := end[len(end)-1].msg.(*Closed)
		if c.Err != nil || c.Delivered != uint64(2*len(sizes)) || c.Unsent != 1 || c.Unknown != 0 {
			w.Errorf("%v, %d delivered, %d unsent, %d unknown", c.Err, c.Delivered, c.Unsent, c.Unknown)
		}
	})
}

// Any sizes in both directions at the same time, with readers that keep some of them for a while:
// same bytes, same order, and every count right.
func TestAnyLargeMessages(t *testing.T) {
	for seed := range uint64(12) {
		onAllKinds(t, func(w *world) { anyLarge(w, rand.New(rand.NewPCG(seed, 8))) }, Config{Limits: Limits{SendQueue: 1 << 20}})
	}
}

func anyLarge(w *world, rng *rand.Rand) {
	eager, most := kib<<rng.IntN(4), 64<<10<<rng.IntN(3)
	p := w.connect(IDConfig{MaxMessage: most, Credits: 1 + rng.IntN(12), eager: eager})
	w.f.Reorder(rng.IntN(2) == 0)
	type side struct {
		probe     *probe
		id        *actor.PID
		sent, got int
		rng       *rand.Rand
	}
	a := &side{probe: p.client, id: p.c, rng: rand.New(rand.NewPCG(rng.Uint64(), 1))}
	b := &side{probe: p.server, id: p.s, rng: rand.New(rand.NewPCG(rng.Uint64(), 2))}
	size := func(seq int) int { // equal at both sides
		r := rand.New(rand.NewPCG(uint64(seq), uint64(most)))
		switch r.IntN(4) {
		case 0:
			return r.IntN(64)
		case 1:
			return eager - 2 + r.IntN(5)
		}
		return 1 + r.IntN(most)
	}
	for _, s := range []*side{a, b} {
		s.probe.reactWith(func(ctx actor.Context) {
			m, ok := ctx.Message().(*Received)
			if !ok {
				return
			}
			if want := pattern(size(s.got), s.got); !bytes.Equal(m.Data, want) {
				w.Errorf("message %d is %d bytes, want %d others", s.got, len(m.Data), len(want))
			}
			s.got++
			if s.rng.IntN(3) == 0 {
				retained := m.Retain()
				time.AfterFunc(time.Duration(s.rng.IntN(5))*time.Millisecond, retained.Release)
			}
		})
	}
	for range 40 {
		s := a
		if rng.IntN(2) == 0 {
			s = b
		}
		for range rng.IntN(8) {
			m := NewSendBuffer(size(s.sent))
			copy(m.Bytes(), pattern(size(s.sent), s.sent))
			s.probe.send(s.id, m)
			s.sent++
		}
		if rng.IntN(3) == 0 {
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
		}
	}
	a.probe.send(a.id, &Close{})
	for _, s := range []*side{a, b} {
		all := until[*Closed](s.probe)
		if c := all[len(all)-1].msg.(*Closed); s == a && (c.Err != nil || c.Delivered != uint64(s.sent) || c.Unknown != 0) {
			w.Errorf("closed: %v, %d of %d delivered, %d unknown", c.Err, c.Delivered, s.sent, c.Unknown)
		}
	}
	if b.got != a.sent {
		w.Errorf("%d of %d messages came before the end", b.got, a.sent)
	}
}

// A reader keeps its messages. Its memory is bounded, and so are the offers of its peer. Releases
// start it again, in order.
func TestSlowReaderOfLargeMessages(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const size, limit, sends = 100 << 10, 1 << 20, 20
		p := w.connect(IDConfig{MaxMessage: size, Credits: 32, eager: kib})
		kept := make(chan *Received, sends)
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				kept <- m.Retain()
			}
		})
		for i := range sends {
			p.client.send(p.c, NewSend(pattern(size, i)))
		}
		settle()
		in, out := w.budgets(w.far)
		if n := len(kept); n < 2 || in > limit || out != 0 {
			w.Fatalf("%d messages kept, in %d bytes, %d to send", n, in, out)
		}
		if _, out := w.budgets(w.rt); out > wire.MaxOffers*mem.RegionSize(size) || out < size {
			w.Errorf("%d bytes wait to be read", out)
		}
		for i := range sends {
			settle()
			if len(kept) == 0 {
				w.Fatalf("stuck after %d of %d messages", i, sends)
			}
			m := <-kept
			if !bytes.Equal(m.Data, pattern(size, i)) {
				w.Fatalf("message %d is another", i)
			}
			m.Release()
		}
		settle()
		if in, _ := w.budgets(w.far); in > 2*mem.SlabBytes { // receives of the ordinary kind
			w.Errorf("%d bytes are left", in)
		}
		if _, out := w.budgets(w.rt); out != 0 {
			w.Errorf("%d bytes are still to be read", out)
		}
	}, Config{Limits: Limits{ReceiveMemory: 1 << 20}})
}

// One connection's owner keeps its messages; the others' messages arrive nevertheless.
func TestOneReaderDoesNotStarveOthers(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const size = 60 << 10
		slow := w.connect(IDConfig{MaxMessage: size, Credits: 32, eager: kib})
		var kept []*Received
		slow.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok && ctx.Sender().Equal(slow.s) {
				kept = append(kept, m.Retain())
			}
		})
		for i := range 30 {
			slow.client.send(slow.c, NewSend(pattern(size, i)))
		}
		settle()
		for range 3 {
			other := w.connectTo(slow.server, IDConfig{MaxMessage: size, Credits: 32, eager: kib})
			for i := range 20 {
				other.client.send(other.c, NewSend(pattern(size, i)))
				settle()
			}
			other.client.send(other.c, &Close{})
			if c := until[*Closed](other.client); c[len(c)-1].msg.(*Closed).Delivered != 20 {
				w.Errorf("the end: %v", c[len(c)-1])
			}
		}
		slow.server.reactWith(func(actor.Context) {})
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
		})
		slow.client.send(slow.c, &Close{})
		if c := until[*Closed](slow.client); c[len(c)-1].msg.(*Closed).Delivered != 30 {
			w.Errorf("the end of the slow one: %v", c[len(c)-1])
		}
	}, Config{Limits: Limits{ReceiveMemory: 1 << 20}})
}

// connectTo makes another connection to an owner that listens.
func (w *world) connectTo(server *probe, opts ...IDConfig) pair {
	w.Helper()
	p := pair{client: w.probe(), server: server}
	p.c = w.rt.CreateID(p.client.pid, one(opts))
	p.client.send(p.c, &Dial{Addr: there + ":7471"})
	for {
		g := server.any()
		if _, ok := g.msg.(*ConnectRequest); ok {
			p.s = g.sender
			break
		}
	}
	server.send(p.s, &Accept{})
	next[*Established](p.client)
	return p
}

// A sender's offers are bounded too: by Limits.SendMemory, over all connections of a loop. The rest
// waits in the queue.
func TestSendMemory(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const size, limit = 100 << 10, 300 << 10
		var pairs []pair
		var kept []*Received
		for range 3 {
			var p pair
			if len(pairs) == 0 {
				p = w.connect(IDConfig{MaxMessage: size, Credits: 2, eager: kib})
				p.server.reactWith(func(ctx actor.Context) {
					if m, ok := ctx.Message().(*Received); ok {
						kept = append(kept, m.Retain())
					}
				})
			} else {
				p = w.connectTo(pairs[0].server, IDConfig{MaxMessage: size, Credits: 2, eager: kib})
			}
			pairs = append(pairs, p)
		}
		most := 0
		for i := range 4 {
			for _, p := range pairs {
				p.client.send(p.c, NewSend(pattern(size, i)))
				_, out := w.budgets(w.rt)
				most = max(most, out)
			}
		}
		for range 8 {
			settle()
			_, out := w.budgets(w.rt)
			most = max(most, out)
			w.onLoop(w.far, func(*loop) {
				for _, m := range kept {
					m.Release()
				}
				kept = nil
			})
		}
		if most > limit || most < size {
			w.Errorf("up to %d bytes were offered at a time, the limit is %d", most, limit)
		}
		for _, p := range pairs {
			p.client.send(p.c, &Close{})
			end := until[*Closed](p.client)
			if c := end[len(end)-1].msg.(*Closed); c.Delivered != 4 {
				w.Errorf("%d delivered: %v", c.Delivered, c.Err)
			}
		}
	}, Config{Limits: Limits{SendMemory: 300 << 10}})
}

// At whatever moment the connection ends, each Send is answered once, and the memory is released:
// openRuntime checks that.
func TestLargeMessagesEnd(t *testing.T) {
	ends := map[string]func(w *world, p pair){
		"disconnect":      func(w *world, p pair) { p.client.send(p.c, &Disconnect{}) },
		"peer disconnect": func(w *world, p pair) { p.server.send(p.s, &Disconnect{}) },
		"destroy":         func(w *world, p pair) { p.client.send(p.c, &DestroyID{}) },
		"peer destroy":    func(w *world, p pair) { p.server.send(p.s, &DestroyID{}) },
		"close":           func(w *world, p pair) { p.client.send(p.c, &Close{}) },
		"removal":         func(w *world, p pair) { w.f.RemoveDevice("mem0") },
		"peer removal":    func(w *world, p pair) { w.f.RemoveDevice("mem1") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			for steps := range 12 {
				onAllKinds(t, func(w *world) {
					const sends = 12
					w.f.Delay(time.Millisecond)
					p := w.connect(IDConfig{MaxMessage: 3 * datapath.ReadPart, Credits: 16, eager: kib})
					answers := 0
					p.client.reactWith(func(ctx actor.Context) {
						switch ctx.Message().(type) {
						case *Sent, *SendFailed:
							answers++
						}
					})
					for i := range sends {
						n := kib + i*5000
						if i == 4 {
							n = 2*datapath.ReadPart + 1
						}
						m := NewSend(pattern(n, i))
						m.Notify = true
						p.client.send(p.c, m)
					}
					time.Sleep(time.Duration(steps) * time.Millisecond)
					end(w, p)
					all := until[*Closed](p.client)
					until[*Closed](p.server)
					c := all[len(all)-1].msg.(*Closed)
					if answers != sends || c.Delivered+c.Unsent+c.Unknown != sends {
						w.Errorf("%d answers to %d sends; %d delivered, %d unsent, %d unknown", answers, sends, c.Delivered, c.Unsent, c.Unknown)
					}
				})
			}
		})
	}
}

// A peer that makes an illegal offer loses its connection.
func TestHostileOffers(t *testing.T) {
	const eager, most = 2 << 10, 64 << 10
	head := func(typ wire.Type, o wire.Offer) []byte {
		b := make([]byte, wire.HeaderLen+wire.OfferLen)
		wire.Header{Type: typ}.Put(b)
		o.Put(b[wire.HeaderLen:])
		return b
	}
	repeat := func(n int, m []byte) (all [][]byte) {
		for range n {
			all = append(all, m)
		}
		return all
	}
	pulled := make([]byte, wire.HeaderLen)
	wire.Header{Type: wire.TypeCredit, Pulled: 1}.Put(pulled)
	for name, messages := range map[string][][]byte{
		"nothing":          {head(wire.TypeOffer, wire.Offer{Key: 1})},
		"too large":        {head(wire.TypeOffer, wire.Offer{Length: most + 1, Key: 1})},
		"wraps":            {head(wire.TypeOffer, wire.Offer{Length: 2, Key: 1, Addr: 1<<64 - 1})},
		"wrong key":        {head(wire.TypeOffer, wire.Offer{Length: most, Key: 0xbad, Addr: 0x1000})},
		"half":             {head(wire.TypeOffer, wire.Offer{Length: 1, Key: 1})[:wire.HeaderLen+8]},
		"more than eight":  repeat(wire.MaxOffers+1, head(wire.TypeOffer, wire.Offer{Length: 1, Key: 1})),
		"never offered":    {pulled},
		"without a credit": repeat(17, head(wire.TypeOffer, wire.Offer{Length: 1, Key: 1})),
	} {
		for flavor, f := range flavors {
			t.Run(flavor+"/"+name, func(t *testing.T) {
				inWorld(t, f, func(w *world) {
					good := w.connect(IDConfig{MaxMessage: most, Credits: 16, eager: eager})
					mallory := w.probe()
					id := w.rt.CreateID(mallory.pid, IDConfig{Raw: true})
					mallory.send(id, &Dial{Addr: there + ":7471", PrivateData: wire.Hello{Credits: 2, Eager: kib, MaxMessage: kib}.Put(nil)})
					_, s := next[*ConnectRequest](good.server)
					good.server.send(s, &Accept{})
					next[*Established](good.server)
					next[*Established](mallory)
					// else the first is read from before the last has come
					w.whileBlocked(w.far, func() {
						for _, m := range messages {
							mallory.send(id, NewSend(m))
						}
					})
					end := until[*Closed](good.server)
					if c := end[len(end)-1].msg.(*Closed); c.Err == nil {
						w.Errorf("closed without an error")
					} else if name != "wrong key" {
						is(w, c.Err, unix.EPROTO)
					}
					until[*Closed](mallory)
					good.client.send(good.c, NewSend(pattern(most, 1)))
					if g := good.server.any(); g.data != string(pattern(most, 1)) {
						w.Errorf("the other connection brought %v", g)
					}
				})
			})
		}
	}
}

// A side that has not looked for the answer to its Read for longer than a peer has time for it,
// because its own loop was blocked or its machine suspended, does not give up the peer.
func TestReadOnABlockedLoop(t *testing.T) {
	asleep := map[string]func(w *world, server *probe, d time.Duration){
		"blocked": func(w *world, server *probe, d time.Duration) {
			server.reactWith(func(ctx actor.Context) {
				if d, ok := ctx.Message().(time.Duration); ok {
					time.Sleep(d)
				}
			})
			w.sys.Root.Send(server.pid, d)
			next[time.Duration](server)
		},
		"suspended": func(w *world, _ *probe, d time.Duration) {
			w.f.Host("far").Freeze()
			time.Sleep(d)
			w.f.Host("far").Thaw()
		},
	}
	for name, how := range asleep {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				if w.flavor == 0 && name == "blocked" {
					return // the twin's queue pair is blocked, too, and gives up itself
				}
				p := w.connect(IDConfig{MaxMessage: 64 << 10, Credits: 4, eager: kib})
				w.f.Delay(time.Second)
				p.client.send(p.c, NewSend(pattern(60<<10, 1)))
				time.Sleep(1500 * time.Millisecond) // the Read is on its way
				how(w, p.server, datapath.ReadPatience+10*time.Second)
				if g := p.server.any(); g.data != string(pattern(60<<10, 1)) {
					w.Errorf("got %v", g)
				}
			})
		})
	}
}

// A peer that never answers the Read of its own offer is given up, and the memory for the message
// is released.
func TestOfferThatIsNotServed(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 64 << 10, Credits: 4, eager: kib})
		var refused *SendFailed
		p.client.reactWith(func(ctx actor.Context) {
			if f, ok := ctx.Message().(*SendFailed); ok {
				refused = f
			}
		})
		var c *datapath.Conn
		w.onLoop(w.far, func(l *loop) {
			c = w.conn(l, p.s)
			c.QP = &deaf{QP: c.QP}
		})
		p.client.send(p.c, NewSend(pattern(60<<10, 1)))
		took := elapsed(func() {
			end := until[*Closed](p.server)
			is(w, end[len(end)-1].msg.(*Closed).Err, unix.EPROTO)
		})
		if took < datapath.ReadPatience || took > datapath.ReadPatience+time.Second {
			w.Errorf("given up after %v", took)
		}
		until[*Closed](p.client)
		is(w, refused, ErrFlushed)
		// the real queue pair would have done this
		w.onLoop(w.far, func(l *loop) { c.In.Arrivals.Ended(c, nil, datapath.Flushed()) })
	})
}

// deaf is a queue pair whose Reads never leave, nor anything posted behind one.
type deaf struct {
	verbs.QP
	stuck bool
}

func (q *deaf) PostSend(wr *verbs.SendWR) error {
	if q.stuck = q.stuck || wr.Op == verbs.Read; q.stuck {
		return nil
	}
	return q.QP.PostSend(wr)
}

// A connection whose ConnParam leaves no Reads to one side has no large messages that way.
func TestNoReads(t *testing.T) {
	onFlavors(t, func(w *world) {
		for _, tt := range []struct {
			param   ConnParam
			out, in int // what each side may send
		}{
			{ConnParam{InitiatorDepth: 1, ResponderResources: 1}, 64 << 10, 64 << 10},
			{ConnParam{InitiatorDepth: 0, ResponderResources: 1}, 64 << 10, kib},
			{ConnParam{InitiatorDepth: 1, ResponderResources: 0}, kib, 64 << 10},
		} {
			opts := IDConfig{MaxMessage: 64 << 10, Credits: 4, eager: kib}
			p := pair{client: w.probe(), server: w.farProbe()}
			lis := w.listen(p.server, opts)
			p.c = w.rt.CreateID(p.client.pid, opts)
			tt.param.RetryCount, tt.param.RNRRetryCount = 7, 7
			p.client.send(p.c, &Dial{Addr: there + ":7471", Param: &tt.param})
			_, p.s = next[*ConnectRequest](p.server)
			p.server.send(p.s, &Accept{})
			e, _ := next[*Established](p.client)
			f, _ := next[*Established](p.server)
			if e.MaxMessage != tt.out || f.MaxMessage != tt.in {
				w.Errorf("%+v: %d and %d bytes, want %d and %d", tt.param, e.MaxMessage, f.MaxMessage, tt.out, tt.in)
			}
			p.client.send(p.c, NewSend(pattern(tt.out, 1)))
			p.server.send(p.s, NewSend(pattern(tt.in, 2)))
			if g := p.server.any(); g.data != string(pattern(tt.out, 1)) {
				w.Errorf("%+v: got %d bytes", tt.param, len(g.data))
			}
			if g := p.client.any(); g.data != string(pattern(tt.in, 2)) {
				w.Errorf("%+v: got %d bytes back", tt.param, len(g.data))
			}
			if tt.param.ResponderResources == 0 {
				p.client.send(p.c, NewSend(make([]byte, tt.out+1)))
				if f, _ := next[*SendFailed](p.client); !contains(f.Error(), "ConnParam.ResponderResources") {
					w.Errorf("it does not name the field to change: %v", f)
				}
			}
			p.client.send(p.c, &Close{})
			until[*Closed](p.client)
			p.server.send(lis, &DestroyID{})
			until[*Closed](p.server) // the connection's
			next[*Closed](p.server)
		}
	})
}

// After a Connect that was refused, a second one is carried out with its own parameters, also about
// Reads.
func TestConnectAgainWithReads(t *testing.T) {
	onFlavors(t, func(w *world) {
		opts := IDConfig{MaxMessage: 64 << 10, Credits: 4, eager: kib}
		p := pair{client: w.probe(), server: w.farProbe()}
		w.listen(p.server, opts)
		p.c = w.rt.CreateID(p.client.pid, opts)
		p.client.send(p.c, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
		next[*cmid.AddrResolved](p.client)
		p.client.send(p.c, &cmid.ResolveRoute{})
		next[*cmid.RouteResolved](p.client)
		p.client.send(p.c, &Connect{Param: &ConnParam{InitiatorDepth: 250, RetryCount: 7, RNRRetryCount: 7}})
		next[*CommandFailed](p.client)
		p.client.send(p.c, &Connect{})
		_, p.s = next[*ConnectRequest](p.server)
		p.server.send(p.s, &Accept{})
		next[*Established](p.server)
		if e, _ := next[*Established](p.client); e.MaxMessage != 64<<10 {
			w.Errorf("may send %d bytes, want %d", e.MaxMessage, 64<<10)
		}
	})
}
