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

	mem "github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// A reader that keeps its messages stops the sender: first the window is used up, then the queue
// is full, then sends fail with ErrQueueFull. Releases start it again.
func TestSlowReaderStopsTheSender(t *testing.T) {
	onFlavors(t, func(w *world) {
		const credits, queue, size = 4, 8, 4 << 10
		kept := make(chan *Received, 100)
		p := w.connect(IDConfig{MaxMessage: size, Credits: credits})
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				kept <- m.Retain()
			}
		})
		for range 20 {
			p.client.send(p.c, NewSend(make([]byte, size)))
		}
		settle()
		if n := len(p.server.got); n != credits {
			w.Fatalf("%d messages arrived, the window is %d", n, credits)
		}
		for range 20 - credits - queue {
			f, _ := next[*SendFailed](p.client)
			is(w, f, ErrQueueFull)
			is(w, f, unix.ENOBUFS)
		}
		p.client.quiet()
		l := w.far.loops[0]
		used := make(chan int, 1)
		_ = l.el.Post(func() { used <- w.far.cfg.Limits.ReceiveMemory - l.RecvBudget.Free })
		if n := <-used; n > 2*mem.SlabBytes {
			w.Errorf("%d unread messages of %d bytes take %d bytes", credits, size, n)
		}
		for released := 0; released < credits+queue; {
			settle()
			if len(kept) == 0 {
				w.Fatalf("stuck after %d of %d messages", released, credits+queue)
			}
			(<-kept).Release()
			released++
		}
		settle()
		if n := len(p.server.got); n != credits+queue {
			w.Errorf("%d messages arrived in all, want %d", n, credits+queue)
		}
		next[*Writable](p.client)
		p.client.quiet()
		p.client.send(p.c, &Close{})
		end := until[*Closed](p.client)
		c := end[len(end)-1].msg.(*Closed)
		if c.Delivered != credits+queue || c.Unsent != 20-credits-queue || c.Unknown != 0 {
			w.Errorf("the end: %v", end)
		}
	}, Config{Limits: Limits{SendQueue: 8}})
}

func TestCloseGivesUpOnAReaderThatNeverReads(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 2})
		var kept []*Received
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				kept = append(kept, m.Retain())
			}
		})
		for range 5 {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		took := elapsed(func() {
			p.client.send(p.c, &Close{Timeout: 3 * time.Second})
			p.client.send(p.c, NewSend([]byte("too late")))
			f, _ := next[*SendFailed](p.client)
			is(w, f, ErrFlushed)
			for range 3 {
				f, _ := next[*SendFailed](p.client)
				is(w, f, ErrFlushed)
			}
			c, _ := next[*Closed](p.client)
			is(w, c.Err, unix.ETIMEDOUT)
			if c.Delivered != 0 || c.Unsent != 4 || c.Unknown != 2 {
				w.Errorf("%d delivered, %d unsent, %d unknown", c.Delivered, c.Unsent, c.Unknown)
			}
		})
		if took != 3*time.Second {
			w.Errorf("gave up after %v", took)
		}
		until[*Closed](p.server)
		for _, m := range kept {
			m.Release() // of a connection that is over
		}
	})
}

func TestOversize(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 3000, Credits: 4}) // rounded up
		p.client.send(p.c, NewSend(make([]byte, 3072)))
		next[*Received](p.server)
		p.client.send(p.c, NewSend(make([]byte, 3073)))
		f, _ := next[*SendFailed](p.client)
		is(w, f, ErrTooLarge)
		is(w, f, unix.EMSGSIZE)
		if !contains(f.Error(), "at most 3072 can be sent (the peer's IDConfig.MaxMessage)") {
			w.Errorf("it does not name the field to change: %v", f)
		}
		if f.Bytes != 3073 {
			w.Errorf("it says %d bytes", f.Bytes)
		}
	})
}

func TestSentOnRequest(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		s := NewSend(bytes.Join([][]byte{[]byte("in "), nil, []byte("parts")}, nil))
		s.Notify = true
		p.client.send(p.c, s)
		if m, _ := next[*Sent](p.client); m.Bytes != len("in parts") {
			w.Errorf("sent %d bytes", m.Bytes)
		}
		if g := p.server.any(); g.data != "in parts" {
			w.Errorf("got %v", g)
		}
		p.client.send(p.c, &Send{})
		f, _ := next[*SendFailed](p.client)
		is(w, f, unix.EINVAL)
	})
}

func TestSendBeforeEstablished(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, NewSend([]byte("x")))
		f, _ := next[*SendFailed](p)
		is(w, f, unix.ENOTCONN)
		p.send(id, &DestroyID{})
		if c, _ := next[*Closed](p); c.Unsent != 1 {
			w.Errorf("%d unsent", c.Unsent)
		}
	})
}

// A disconnect overtakes messages that wait in the queue. Those are returned before the end is
// reported.
func TestDisconnectFlushes(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 2})
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m)
			}
		})
		for range 6 {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		settle()
		p.client.send(p.c, &Disconnect{})
		end := until[*Closed](p.client)
		if k := kinds(end); !strings.HasSuffix(k, "SendFailed SendFailed SendFailed SendFailed Disconnected Closed") {
			w.Errorf("the end is reported as %s", k)
		}
		if c := end[len(end)-1].msg.(*Closed); c.Unsent != 4 || c.Unknown != 2 {
			w.Errorf("the end: %v", end)
		}
	})
}

// A peer of this package connects with a raw one, and the other way round. Both connections are
// without headers.
func TestForeignPeers(t *testing.T) {
	for name, f := range flavors {
		for _, rawListens := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/raw listens %v", name, rawListens), func(t *testing.T) {
				inWorld(t, f, func(w *world) { foreign(w, rawListens) })
			})
		}
	}
}

func foreign(w *world, rawListens bool) {
	server, client := w.farProbe(), w.probe()
	var lopts, copts IDConfig
	if rawListens {
		lopts = IDConfig{Raw: true}
	} else {
		copts = IDConfig{Raw: true}
	}
	w.listen(server, lopts)
	c := w.rt.CreateID(client.pid, copts)
	client.send(c, &Dial{Addr: there + ":7471", PrivateData: []byte("secret")})
	r, s := next[*ConnectRequest](server)
	if !bytes.Contains(r.PrivateData, []byte("secret")) {
		w.Errorf("the request carries %q", r.PrivateData)
	}
	server.send(s, &Accept{PrivateData: []byte("fine")})
	next[*Established](server)
	e, _ := next[*Established](client)
	if !bytes.HasPrefix(e.PrivateData, []byte("fine")) {
		w.Errorf("the reply carries %q", e.PrivateData)
	}
	client.send(c, NewSend([]byte("ping")))
	if g := server.any(); g.data != "ping" {
		w.Errorf("got %v", g)
	}
	server.send(s, NewSend([]byte("pong")))
	if g := client.any(); g.data != "pong" {
		w.Errorf("got %v", g)
	}
	for _, i := range w.far.Inspect() {
		want := "raw (foreign peer)"
		if rawListens {
			want = "raw"
		}
		if i.PID.Equal(s) && i.Wire != want {
			w.Errorf("the connection is %q, want %q", i.Wire, want)
		}
	}
	client.send(c, &Close{})
	end := until[*Closed](client)
	if cl := end[len(end)-1].msg.(*Closed); cl.Err != nil || cl.Delivered != 0 || cl.Unknown != 1 {
		w.Errorf("the end: %v", end)
	}
}

// A peer that breaks the protocol loses its connection, and no other is affected.
func TestProtocolErrors(t *testing.T) {
	head := func(h wire.Header, more string) []byte {
		b := make([]byte, wire.HeaderLen, wire.HeaderLen+len(more))
		h.Put(b)
		return append(b, more...)
	}
	for name, messages := range map[string][][]byte{
		"no header":      {[]byte("x")},
		"unknown type":   {head(wire.Header{Type: 9}, "")},
		"beyond credits": {head(wire.Header{Type: wire.TypeData}, "1"), head(wire.Header{Type: wire.TypeData}, "2"), head(wire.Header{Type: wire.TypeData}, "3")},
		"never sent":     {head(wire.Header{Type: wire.TypeCredit, Consumed: 1}, "")},
		"update + data":  {head(wire.Header{Type: wire.TypeCredit}, "x")},
		"empty bundle":   {bundleOf()},
		"cut length":     {append(bundleOf("a"), 0)},
		"cut message":    {append(bundleOf("a"), 0, 2, 'b')},
		"much in bundle": {bundleOf("1", "2", "3")},
		"then one more":  {bundleOf("1", "2"), head(wire.Header{Type: wire.TypeData}, "3")},
		"bundles twice":  {bundleOf("1"), bundleOf("2", "3")},
		"many in bundle": {bundleOf(make([]string, wire.MaxBundle+1)...)},
		"never sent it":  {append([]byte{byte(wire.TypeBundle), 0, 0, 0, 0, 0, 0, 1}, bundleOf("1")[wire.HeaderLen:]...)},
	} {
		for flavor, f := range flavors {
			t.Run(flavor+"/"+name, func(t *testing.T) {
				inWorld(t, f, func(w *world) {
					good := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 2})
					good.server.reactWith(func(ctx actor.Context) {
						if m, ok := ctx.Message().(*Received); ok && string(m.Data) != "fine" {
							keep(w, m)
						}
					})
					mallory := w.probe()
					id := w.rt.CreateID(mallory.pid, IDConfig{Raw: true})
					mallory.send(id, &Dial{
						Addr: there + ":7471", PrivateData: wire.Hello{Credits: 2, Eager: kib, MaxMessage: kib}.Put(nil),
					})
					_, s := next[*ConnectRequest](good.server)
					good.server.send(s, &Accept{})
					next[*Established](good.server)
					next[*Established](mallory)
					for _, m := range messages {
						mallory.send(id, NewSend(m))
					}
					end := until[*Closed](good.server)
					var p *ProtocolError
					if c := end[len(end)-1].msg.(*Closed); !errors.As(c.Err, &p) {
						w.Errorf("closed because of %v", c.Err)
					}
					if k := kinds(end); !strings.HasSuffix(k, "Disconnected Closed") {
						w.Errorf("the end is reported as %s", k)
					}
					until[*Closed](mallory)
					good.client.send(good.c, NewSend([]byte("fine")))
					if g := good.server.any(); g.data != "fine" {
						w.Errorf("the other connection brought %v", g)
					}
				})
			})
		}
	}
}

// Events that the device reports out of order are reordered: nothing precedes Established, and
// everything precedes the end.
func TestReorderedEvents(t *testing.T) {
	for range 20 {
		onFlavors(t, func(w *world) {
			w.f.Reorder(true)
			server, client := w.farProbe(), w.probe()
			server.reactWith(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*ConnectRequest); ok {
					ctx.Respond(&Accept{})
				}
			})
			client.reactWith(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*Established); ok {
					for i := range 10 {
						ctx.Respond(NewSend([]byte{byte(i)}))
					}
					ctx.Respond(&Close{})
				}
			})
			w.listen(server)
			id := w.rt.CreateID(client.pid, IDConfig{})
			client.send(id, &Dial{Addr: there + ":7471"})
			end := until[*Closed](server)
			want := "ConnectRequest Established" + strings.Repeat(" Received", 10) + " Disconnected Closed"
			if k := kinds(end); k != want {
				w.Errorf("got %s", k)
			}
			until[*Closed](client)
		})
	}
}

// Messages received before the end are delivered before the end, also when the device reports the
// end first.
func TestReceivedBeforeTheEnd(t *testing.T) {
	for range 20 {
		onFlavors(t, func(w *world) {
			w.f.Reorder(true)
			server, client := w.farProbe(), w.probe()
			w.listen(server, IDConfig{Raw: true})
			id := w.rt.CreateID(client.pid, IDConfig{Raw: true})
			client.send(id, &Dial{Addr: there + ":7471"})
			_, s := next[*ConnectRequest](server)
			client.reactWith(func(ctx actor.Context) {
				if _, ok := ctx.Message().(string); ok {
					ctx.Send(id, NewSend([]byte("first")))
					ctx.Send(id, NewSend([]byte("last")))
					ctx.Send(id, &Disconnect{}) // arrives in the same turn
				}
			})
			server.send(s, &Accept{})
			next[*Established](server)
			next[*Established](client)
			w.sys.Root.Send(client.pid, "go")
			if k := kinds(until[*Closed](server)); k != "Received Received Disconnected Closed" {
				w.Errorf("got %s", k)
			}
			until[*Closed](client)
		})
	}
}

// A Send that its user has copied by value, and sent once, affects no other messages.
func TestSendCopied(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		for range 50 {
			s := NewSend(pattern(40, 1))
			c := *s
			c.Notify = true
			p.client.send(p.c, &c)
			next[*Sent](p.client)
			next[*Received](p.server)
			settle()
			if n := NewSend([]byte("x")).Len(); n != 1 {
				w.Fatalf("another's message of one byte has %d", n)
			}
		}
	})
}
