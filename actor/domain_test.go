package actor

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// inDomain are connections of one server's owner in one domain, with a client's owner each.
type inDomain struct {
	tb      testing.TB
	server  *probe
	rt      *Runtime // the clients'
	far     *Runtime // the server's
	at      string   // the host whose connections share the domain
	outside string   // the host whose connections are in no domain
	*Domain
}

// shareDomain starts two listeners. The connections of the first share a domain.
func shareDomain(tb testing.TB, far, near *Runtime, at, outside string, cfg IDConfig) *inDomain {
	tb.Helper()
	server := newProbe(tb, far.sys, far.OnLoop(), nil)
	_, outside = listen(server, far, outside, cfg)
	cfg.Domain = new(Domain)
	_, at = listen(server, far, at, cfg)
	return &inDomain{tb, server, near, far, at, outside, cfg.Domain}
}

// join makes one more connection.
func (d *inDomain) join(cfg ...IDConfig) pair {
	d.tb.Helper()
	return join(d.tb, d.rt, d.server, d.at, cfg...)
}

// onDomains runs test with a listener whose connections share a domain, on each kind of device.
func onDomains(t *testing.T, cfg IDConfig, test func(tb testing.TB, d *inDomain)) {
	t.Helper()
	onAllDevices(t, func(w *world) {
		test(w, shareDomain(w, w.far, w.rt, there+":7471", there+":7472", cfg))
	})
	t.Run("embedded", func(t *testing.T) {
		rt := openIWARP(t, testSystem(t))
		test(t, shareDomain(t, rt, rt, "127.0.0.1:0", "127.0.0.1:0", cfg))
	})
}

// put makes p's client write text into the peer's memory, and waits until it is there.
func put(p pair, key RemoteKey, text string) {
	p.client.tb.Helper()
	near := memory(p.client, p.c, len(text), 0)
	fill(p.client, p.c, near, text)
	p.client.send(p.c, &Write{Memory: near, Length: len(text), Key: key})
	next[*WriteDone](p.client)
	p.client.send(p.c, NewSend([]byte("written")))
	if g := p.server.any(); g.data != "written" {
		p.client.tb.Fatalf("behind the Write came %v", g)
	}
	p.client.send(p.c, &FreeMemory{Memory: near})
	next[*Done](p.client)
}

// have returns n bytes of the peer's memory, as read by p's client.
func have(p pair, key RemoteKey, n int) string {
	p.client.tb.Helper()
	near := memory(p.client, p.c, n, 0)
	p.client.send(p.c, &Read{Memory: near, Length: n, Key: key})
	next[*ReadDone](p.client)
	text := string(contents(p.client, p.c, near))
	p.client.send(p.c, &FreeMemory{Memory: near})
	next[*Done](p.client)
	return text
}

// overreach makes p's client use a key.
func overreach(p pair, key RemoteKey) {
	p.client.tb.Helper()
	p.client.send(p.c, &Read{Memory: memory(p.client, p.c, 8, 0), Length: 8, Key: key})
}

// costs makes p's client use a key that costs it the connection.
func costs(p pair, key RemoteKey) {
	p.client.tb.Helper()
	overreach(p, key)
	for _, g := range until[*Closed](p.client) {
		if _, ok := g.msg.(*ReadDone); ok {
			p.client.tb.Errorf("%v was good", key)
		}
	}
	until[*Closed](p.server)
}

// Memory that was allocated through one connection is granted to the peer of another, and named in
// that one's own Reads and Writes. A connection outside of the domain is kept out, whatever keys it
// knows.
func TestDomainIsShared(t *testing.T) {
	onDomains(t, IDConfig{Memory: 1 << 12}, func(tb testing.TB, d *inDomain) {
		cfg := IDConfig{Memory: 1 << 12}
		p, q := d.join(cfg), d.join(cfg)
		shared := memory(p.server, p.s, 1<<10, rw)
		key := grant(p.server, p.s, shared)
		if grant(q.server, q.s, shared) != key {
			tb.Error("a second connection's Grant gives another key")
		}
		put(p, key, "by the first peer")
		if got := have(q, key, 17); got != "by the first peer" {
			tb.Errorf("the second peer reads %q", got)
		}
		far := memory(q.client, q.c, 1<<10, rw)
		theirs := grant(q.client, q.c, far)
		q.server.send(q.s, &Write{Memory: shared, Length: 17, Key: theirs})
		next[*WriteDone](q.server)
		q.server.send(q.s, &Read{Memory: shared, At: 100, Length: 17, Key: theirs})
		next[*ReadDone](q.server)
		if got := contents(p.server, p.s, shared)[100:117]; string(got) != "by the first peer" {
			tb.Errorf("what went to the second peer and back is %q", got)
		}
		costs(join(tb, d.rt, d.server, d.outside, cfg), key)
		if got := have(p, key, 17); got != "by the first peer" {
			tb.Errorf("after a stranger's end the first peer reads %q", got)
		}
	})
}

// The memory stays when the connection that has allocated it ends, also in the middle of a
// sibling's operation, and so do the grants made through it. A sibling frees it.
func TestDomainOutlivesAConnection(t *testing.T) {
	for name, end := range map[string]func(p pair){
		"closed":              func(p pair) { p.server.send(p.s, &Close{}) },
		"destroyed":           func(p pair) { p.server.send(p.s, &DestroyID{}) },
		"stopped":             func(p pair) { p.server.sys.Root.Stop(p.s) },
		"the peer's fault":    func(p pair) { overreach(p, RemoteKey{Addr: 8, RKey: 7, Length: 8, Rights: rw}) },
		"ended by the client": func(p pair) { p.client.send(p.c, &DestroyID{}) },
	} {
		t.Run(name, func(t *testing.T) {
			onDomains(t, IDConfig{Memory: 1 << 12}, func(tb testing.TB, d *inDomain) {
				cfg := IDConfig{Memory: 1 << 12}
				p, q := d.join(cfg), d.join(cfg)
				shared := memory(p.server, p.s, 1<<11, rw)
				key := grant(p.server, p.s, shared)
				theirs := grant(q.client, q.c, memory(q.client, q.c, 1<<10, rw))
				reads := []*Read{}
				for i := range 100 {
					reads = append(reads, &Read{Memory: shared, At: 1 << 10, Length: 1 << 10, Key: theirs})
					q.server.send(q.s, reads[i])
				}
				end(p)
				closed := false
				for done := 0; done < len(reads) || !closed; {
					switch m := q.server.any().msg.(type) {
					case *AccessError:
						tb.Fatalf("a sibling's Read: %v", m)
					case *ReadDone:
						done++
					case *Closed:
						closed = true
					}
				}
				until[*Closed](p.client)
				put(q, key, "later")
				if got := have(d.join(cfg), key, 5); got != "later" {
					tb.Errorf("who joins later reads %q", got)
				}
				if got := contents(q.server, q.s, shared)[:5]; string(got) != "later" {
					tb.Errorf("the memory holds %q", got)
				}
				q.server.send(q.s, &FreeMemory{Memory: shared})
				next[*Done](q.server)
				memory(q.server, q.s, 1<<12, 0) // all of it again
			})
		})
	}
}

// A grant that is taken back through one connection is good for no peer of the domain, and a Read
// of one connection keeps another from taking the memory.
func TestDomainRevokes(t *testing.T) {
	onDomains(t, IDConfig{Memory: 1 << 12}, func(tb testing.TB, d *inDomain) {
		cfg := IDConfig{Memory: 1 << 12}
		p, q, r := d.join(cfg), d.join(cfg), d.join(cfg)
		shared := memory(p.server, p.s, 1<<10, rw)
		key := grant(p.server, p.s, shared)
		put(p, key, "kept")
		q.server.send(q.s, &Revoke{Memory: shared})
		next[*Revoked](q.server)
		costs(p, key)
		costs(q, key)
		if got := contents(r.server, r.s, shared)[:4]; string(got) != "kept" {
			tb.Errorf("the memory holds %q", got)
		}
		if again := grant(r.server, r.s, shared); again == key || have(r, again, 4) != "kept" {
			tb.Error("a later grant is the same key, or is good for nothing")
		}
	})
}

// While a device has an operation of one connection, even one that has ended, no other connection
// can free the memory that it names.
func TestDomainInUseBySibling(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
		near.takes = map[states.Op]time.Duration{states.OpDestroyID: time.Hour}
		cfg := IDConfig{Memory: 100, Domain: new(Domain), Keepalive: Keepalive{Idle: -1}}
		server, client := w.farProbe(), w.probe()
		w.listen(server, IDConfig{Memory: 100, Keepalive: cfg.Keepalive})
		dial := func() (c, s *actor.PID) {
			c = w.rt.CreateID(client.pid, cfg)
			client.send(c, &Dial{Addr: there + ":7471"})
			_, s = next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			next[*Established](client)
			return c, s
		}
		c, s := dial()
		sibling, _ := dial()
		key := grant(server, s, memory(server, s, 100, rw))
		m := memory(client, c, 50, 0)
		w.f.Delay(time.Minute)
		read := &Read{Key: key, Memory: m, Length: 8}
		client.send(c, read)
		settle()
		refused := func(when string) {
			w.Helper()
			for _, cmd := range []Command{&FreeMemory{Memory: m}, &Revoke{Memory: m}} {
				client.send(sibling, cmd)
				if f, _ := next[*CommandFailed](client); !errors.Is(f, unix.EBUSY) {
					w.Errorf("%s: %v", when, f)
				}
			}
		}
		refused("the device reads")
		w.sys.Root.Stop(c)
		next[*AccessError](client)
		next[*Closed](client)
		refused("the device still has the queue pair")
		time.Sleep(2 * time.Hour)
		settle()
		w.f.Delay(0)
		near.takes = nil
		client.send(sibling, &FreeMemory{Memory: m})
		until[*Done](client)
		memory(client, sibling, 100, 0)
	})
}

// Allocated memory counts once, whichever connection allocated it, and IDConfig.Memory is for all.
func TestDomainCountsOnce(t *testing.T) {
	onDomains(t, IDConfig{Memory: 100}, func(tb testing.TB, d *inDomain) {
		p, q := d.join(), d.join()
		used := func() (n int) {
			for _, l := range d.far.loops {
				touch(d.server, p.s, func() { n += d.far.cfg.Limits.Memory - l.MemoryBudget })
			}
			return n
		}
		m := memory(p.server, p.s, 60, rw)
		grant(p.server, p.s, m)
		grant(q.server, q.s, m)
		if n := used(); n != 60 {
			tb.Errorf("memory of 60 bytes counts %d", n)
		}
		listed := 0
		turn(tb, d.far, func() {
			for _, dev := range d.far.Loops()[0].Devices {
				listed += dev.Memory
			}
		})
		if listed != 60 {
			tb.Errorf("memory of 60 bytes is listed as %d", listed)
		}
		q.server.send(q.s, &AllocMemory{Bytes: 41})
		f, _ := next[*CommandFailed](q.server)
		is(tb, f, unix.ENOMEM)
		memory(q.server, q.s, 40, 0)
		if n := used(); n != 100 {
			tb.Errorf("memory of 100 bytes counts %d", n)
		}
	})
}

// A connection that is not established yet can grant its siblings' memory: the key travels in the
// private data. It needs no private memory, and none is allocated for it.
func TestDomainBeforeEstablished(t *testing.T) {
	onDomains(t, IDConfig{Memory: 1 << 10}, func(tb testing.TB, d *inDomain) {
		p := d.join()
		m := memory(p.server, p.s, 1<<10, rw)
		fill(p.server, p.s, m, "of a sibling")
		cfg := IDConfig{Memory: 1 << 10}
		client := newProbe(tb, d.rt.sys, d.rt.OnLoop(), nil)
		c := d.rt.CreateID(client.pid, cfg)
		client.send(c, &Dial{Addr: d.at})
		_, s := next[*ConnectRequest](d.server)
		key := grant(d.server, s, m)
		d.server.send(s, &Accept{PrivateData: sent(tb, key)})
		next[*Established](d.server)
		e, _ := next[*Established](client)
		if got := have(pair{client: client, server: d.server, c: c, s: s}, keyOf(tb, e.PrivateData), 12); got != "of a sibling" {
			tb.Errorf("read %q", got)
		}
	})
}

// However the last connections end, the memory goes with them, and its handle reports that; the
// next ones begin with a domain that is empty.
func TestDomainEnds(t *testing.T) {
	for name, end := range map[string]func(w *world, server *probe, p, q pair){
		"both close":      func(_ *world, server *probe, p, q pair) { server.send(p.s, &Close{}); server.send(q.s, &Close{}) },
		"stopped":         func(w *world, _ *probe, p, q pair) { w.sys.Root.Stop(p.s); w.sys.Root.Stop(q.s) },
		"the owner dies":  func(w *world, server *probe, _, _ pair) { w.sys.Root.Stop(server.pid) },
		"the device goes": func(w *world, _ *probe, _, _ pair) { w.f.RemoveDevice("mem1") },
	} {
		t.Run(name, func(t *testing.T) {
			onAllDevices(t, func(w *world) {
				d := shareDomain(w, w.far, w.rt, there+":7471", there+":7472", IDConfig{Memory: 100})
				p, q := d.join(IDConfig{Memory: 100}), d.join(IDConfig{Memory: 100})
				m := memory(p.server, p.s, 100, rw)
				key := grant(p.server, p.s, m)
				grant(q.server, q.s, m)
				w.f.Delay(time.Second)
				near := memory(q.client, q.c, 100, 0)
				for range 10 {
					q.client.send(q.c, &Write{Memory: near, Length: 100, Key: key})
				}
				settle()
				end(w, d.server, p, q)
				time.Sleep(time.Minute)
				settle()
				w.onLoop(w.far, func(l *loop) {
					if l.MemoryBudget != w.far.cfg.Limits.Memory {
						w.Errorf("%d bytes are not given back", w.far.cfg.Limits.Memory-l.MemoryBudget)
					}
					if _, err := m.ReadAt(make([]byte, 1), 0); !errors.Is(err, ErrMemoryGone) {
						w.Errorf("the handle: %v", err)
					}
				})
				if d.home != nil {
					w.Error("the domain is not empty")
				}
			})
		})
	}
}

// Shutdown ends what shares a domain, in the middle of everything.
func TestShutdownWithDomain(t *testing.T) {
	onAllDevices(t, func(w *world) {
		d := shareDomain(w, w.far, w.rt, there+":7471", there+":7472", IDConfig{Memory: 100})
		p, q := d.join(IDConfig{Memory: 100}), d.join(IDConfig{Memory: 100})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		w.f.Delay(time.Second)
		near := memory(q.client, q.c, 100, 0)
		for range 10 {
			q.client.send(q.c, &Write{Memory: near, Length: 100, Key: key})
		}
		settle()
	})
}

// A goroutine that uses memory keeps it beyond the last connection. Connections that use the domain
// again in the meantime have other memory, and the earlier memory does not come back.
func TestDomainUsedBeyondItsEnd(t *testing.T) {
	onAllDevices(t, func(w *world) {
		d := shareDomain(w, w.far, w.rt, there+":7471", there+":7472", IDConfig{Memory: 100})
		p := d.join()
		m := memory(p.server, p.s, 100, rw)
		inside, leave := make(chan []byte), make(chan struct{})
		done := make(chan error)
		go func() {
			done <- m.Use(func(b []byte) error {
				inside <- b
				<-leave
				b[99] = 1
				return nil
			})
		}()
		<-inside
		p.server.send(p.s, &Close{})
		until[*Closed](p.server)
		q := d.join()
		q.server.send(q.s, &Grant{Memory: m})
		f, _ := next[*CommandFailed](q.server)
		is(w, f, ErrMemoryGone)
		again := memory(q.server, q.s, 100, rw)
		settle()
		w.onLoop(w.far, func(l *loop) {
			if n := w.far.cfg.Limits.Memory - l.MemoryBudget; n != 200 {
				w.Errorf("%d bytes count, want both memories'", n)
			}
		})
		close(leave)
		if err := <-done; err != nil {
			w.Error(err)
		}
		settle()
		w.onLoop(w.far, func(l *loop) {
			if n := w.far.cfg.Limits.Memory - l.MemoryBudget; n != 100 || len(again.Bytes()) != 100 || m.Bytes() != nil {
				w.Errorf("%d bytes count, %d of the new memory", n, len(again.Bytes()))
			}
		})
	})
}

// The memory of a large message that its peer has read is used again if no other peer can read it,
// and not in a domain that others share: another peer that knows its key may be in the middle of
// reading, and would get the next contents.
func TestDomainLargeMessages(t *testing.T) {
	for name, shared := range map[string]bool{"alone": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			rt := openIWARP(t, testSystem(t))
			d := shareDomain(t, rt, rt, "127.0.0.1:0", "127.0.0.1:0", IDConfig{})
			p := d.join(IDConfig{MaxMessage: 1 << 20})
			if shared {
				d.join()
			}
			again := 0
			seen := make(map[*byte]bool)
			for range 50 {
				s := NewSendBuffer(1 << 20)
				if at := &s.Bytes()[0]; seen[at] {
					again++
				} else {
					seen[at] = true
				}
				p.server.send(p.s, s)
				next[*Received](p.client)
				for range 3 { // the messages behind it
					p.server.send(p.s, NewSend([]byte("behind")))
					next[*Received](p.client)
				}
			}
			if shared && again > 0 || !shared && again == 0 {
				t.Errorf("memory was used again %d times of 50", again)
			}
		})
	}
}
