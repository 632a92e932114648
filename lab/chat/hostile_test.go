package main

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/lab/chat/room"
)

// typeAll types the same lines in a loop until stop is closed.
func typeAll(s *script, stop <-chan struct{}, texts ...string) {
	for i := 0; ; i++ {
		select {
		case s.typed <- texts[i%len(texts)]:
		case <-stop:
			return
		}
	}
}

// An address cannot write more lines by opening more connections. A member at that address that
// writes little still has its turn.
func TestManyOfOneAddress(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		bob := enterWorld(w, w.Host("mem1", "10.0.0.2"), chatAddr, "bob", room.Lobby, false)
		theirs := w.Host("mem2", "10.0.0.3")
		ann := enterWorld(w, theirs, chatAddr, "ann", room.Lobby, false)
		stop := make(chan struct{})
		end := sync.OnceFunc(func() { close(stop) })
		defer end()
		all := []*script{ann, bob}
		for i := range 20 {
			all = append(all, enterWorld(w, theirs, chatAddr, fmt.Sprint("mallory", i), room.Lobby, false))
			w.Advance(100 * time.Millisecond) // the address owes nothing
		}
		for _, s := range all[2:] {
			go typeAll(s, stop, "flood")
		}
		w.Advance(time.Second)
		before := bob.count(": flood")
		w.Advance(time.Second)
		if n := bob.count(": flood") - before; n < pace/2 || n > pace+burst {
			t.Errorf("%d lines of one address in a second", n)
		}
		ann.typed <- "hello"
		w.Advance(100 * time.Millisecond)
		if bob.count("ann: hello") != 1 {
			t.Error("ann has no turn among them")
		}
		bob.typed <- "me too"
		w.Wait()
		if ann.count("bob: me too") != 1 {
			t.Error("bob waits for them")
		}
		end()
		leave(w, all...)
	})
}

// A line costs as much as the work that it causes in the server, such as sending a room's history
// again and again, or reading a large request.
func TestCost(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		mallory := enterWorld(w, w.Host("mem1", "10.0.0.2"), chatAddr, "mallory", room.Lobby, false)
		for range room.HistoryLen {
			mallory.typed <- strings.Repeat("<", room.MaxText)
		}
		w.Advance(time.Second)
		stop := make(chan struct{})
		end := sync.OnceFunc(func() { close(stop) })
		defer end()
		go typeAll(mallory, stop, "/room away", "/room lobby")
		w.Advance(time.Second)
		if n := mallory.count("(earlier)"); n < 2*room.HistoryLen || n > 20*room.HistoryLen {
			t.Errorf("%d lines of %d bytes were sent again in a second", n, room.MaxText)
		}
		end()
		leave(w, mallory)
	})
}

// seen is a server that records its state after each message.
type seen struct {
	*server
	mu                            sync.Mutex
	waiting, most, peers, sources int
}

func (s *seen) Receive(ctx actor.Context) {
	s.server.Receive(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.peers, s.sources = s.server.waiting, len(s.server.peers), len(s.server.sources)
	s.most = max(s.most, s.waiting)
}

// startServer starts a server that the test can inspect. At most all bytes may wait for its
// members.
func startServer(w *actortest.World, all int) *seen {
	s := &seen{server: newServer(w.Runtime(), chatAddr, slog.New(slog.DiscardHandler), nil)}
	s.all = all
	w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return s }, w.Runtime().OnLoop()))
	w.Wait()
	return s
}

// The bytes that wait for all members together are limited, and are released when the members have
// gone.
func TestBacklogsInAll(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		const frozen, all = 20, 4 << 20 // that many full backlogs exceed it
		s := startServer(w, all)
		idle := w.Host("mem1", "10.0.0.2")
		for i := range frozen {
			enterProbe(w, idle, fmt.Sprint("frozen", i), "cellar")
			w.Advance(100 * time.Millisecond)
		}
		stop := make(chan struct{})
		end := sync.OnceFunc(func() { close(stop) })
		defer end()
		var mouths []*script
		for i := range 2 {
			w.Advance(100 * time.Millisecond)
			mouth := enterWorld(w, w.Host(fmt.Sprint("mouth", i), fmt.Sprint("10.0.0.", 10+i)), chatAddr, fmt.Sprint("mouth", i), "cellar", false)
			mouths = append(mouths, mouth)
		}
		for _, mouth := range mouths {
			go typeAll(mouth, stop, strings.Repeat("<", room.MaxText))
		}
		w.Advance(patience)
		end()
		s.mu.Lock()
		if most := s.most; most < all/2 || most > all+frozen*(least+6*room.MaxText) {
			t.Errorf("%d KiB wait in all", most>>10)
		}
		s.mu.Unlock()
		w.Advance(3 * patience)
		leave(w, mouths...)
		w.Advance(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting != 0 || s.peers != 0 || s.sources != 0 {
			t.Errorf("%d bytes, %d peers and %d addresses are left", s.waiting, s.peers, s.sources)
		}
	})
}

// dialer connects, and sends a hello or nothing, until it is refused.
type dialer struct {
	rt      *rdma.Runtime
	mu      sync.Mutex
	in      int
	refused string
}

func (d *dialer) Receive(ctx actor.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(d.rt.CreateID(ctx.Self()), &rdma.Dial{Addr: chatAddr, PrivateData: []byte(version)})
	case *rdma.Established:
		d.in++
		ctx.Request(d.rt.CreateID(ctx.Self()), &rdma.Dial{Addr: chatAddr, PrivateData: []byte(version)})
	case *rdma.Rejected:
		d.refused = string(m.PrivateData)
	}
}

// If an address takes as many connections as it can get, some are left for others.
func TestPlaces(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		s := startServer(w, all)
		d := &dialer{rt: w.Host("mem1", "10.0.0.2")}
		w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return d }, d.rt.OnLoop()))
		w.Wait()
		d.mu.Lock()
		if d.in != places/2 || !strings.Contains(d.refused, "too many") {
			t.Errorf("one address has %d of %d places, and gets %q", d.in, places, d.refused)
		}
		d.mu.Unlock()
		ann := enterWorld(w, w.Host("mem2", "10.0.0.3"), chatAddr, "ann", room.Lobby, false)
		w.Advance(2 * helloFor)
		s.mu.Lock()
		n := s.peers
		s.mu.Unlock()
		if n != 1 {
			t.Errorf("%d connections are left though only ann has said who she is", n)
		}
		leave(w, ann)
	})
}
