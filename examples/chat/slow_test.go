package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// script is a console whose user types what a test says, and remembers what was shown.
type script struct {
	typed chan string
	mu    sync.Mutex
	shown []string
}

func newScript() *script { return &script{typed: make(chan string)} }

func (s *script) ReadLine() (string, error) {
	if l, ok := <-s.typed; ok {
		return l, nil
	}
	return "", io.EOF
}

func (s *script) Print(l string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = append(s.shown, l)
}

func (s *script) Status(l string) { s.Print("-- " + l) }
func (s *script) Attended() bool  { return false }
func (s *script) Close() error    { return nil }

// count is how many lines shown contain text.
func (s *script) count(text string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.shown {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

const chatAddr = "10.0.0.1:7471"

// enterWorld starts the chat's own client on a machine of the world.
func enterWorld(w *actortest.World, rt *rdma.Runtime, nick string) (*script, <-chan error) {
	s, ended, tokens := newScript(), make(chan error, 1), make(chan struct{}, ahead)
	c := &client{rt: rt, server: chatAddr, hello: hello{nick, lobby}, con: s, tokens: tokens, ended: ended}
	pid := w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }, rt.OffLoop()))
	go readLines(s, w.System(), pid, tokens)
	w.Wait()
	if s.count("you are "+nick) != 1 {
		w.T().Fatalf("%s sees %q", nick, s.shown)
	}
	return s, ended
}

// leave ends the user's input and waits for the client's goodbye.
func leave(w *actortest.World, s *script, ended <-chan error) {
	close(s.typed)
	if err := <-ended; err != nil {
		w.T().Error(err)
	}
}

// A member that has caught up and is slow again has all of its time again.
func TestSlowTwice(t *testing.T) {
	actortest.Run(t, func(w *actortest.World) {
		started := make(chan outcome, 1)
		w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return newServer(w.Runtime(), chatAddr, slog.New(slog.DiscardHandler), started)
		}, w.Runtime().OnLoop()))
		if o := <-started; o.err != nil {
			t.Fatal(o.err)
		}
		ann, annEnded := enterWorld(w, w.Host("mem1", "10.0.0.2"), "ann")
		eve := w.Probe()
		id := w.Host("mem2", "10.0.0.3").CreateID(eve.PID())
		eve.Request(id, &rdma.Dial{Addr: chatAddr, PrivateData: hello{"eve", lobby}.encode()})
		actortest.Next[*rdma.Established](eve)
		actortest.Next[*rdma.Received](eve) // the welcome
		const lines = 1000
		burst := func() {
			for range lines {
				ann.typed <- "line"
			}
			w.Wait()
		}
		begin := w.Now()
		burst()
		for range lines {
			actortest.Next[*rdma.Received](eve)
		}
		w.Wait()
		w.Advance(slowFor - 2*time.Second - w.Now().Sub(begin)) // to 2 s before her first time would be up
		burst()
		w.Advance(4 * time.Second)
		w.Wait()
		if ann.count("eve left") != 0 {
			t.Error("eve was let go for having been slow before")
		}
		w.Advance(slowFor)
		w.Wait()
		if ann.count("eve left (too slow)") != 1 {
			t.Error("eve was not let go the second time")
		}
		leave(w, ann, annEnded)
		w.Advance(time.Second)
	})
}

// A member that stops reading slows those who write for a moment, and is then let go; nobody else misses a line.
func TestStalledReader(t *testing.T) {
	actortest.Run(t, func(w *actortest.World) {
		started := make(chan outcome, 1)
		w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return newServer(w.Runtime(), chatAddr, slog.New(slog.DiscardHandler), started)
		}, w.Runtime().OnLoop()))
		if o := <-started; o.err != nil {
			t.Fatal(o.err)
		}
		annSays, annEnded := enterWorld(w, w.Host("mem1", "10.0.0.2"), "ann")
		bob, bobEnded := enterWorld(w, w.Host("mem2", "10.0.0.3"), "bob")
		eve := w.Probe() // takes its first message and no more
		id := w.Host("mem3", "10.0.0.4").CreateID(eve.PID())
		eve.Request(id, &rdma.Dial{Addr: chatAddr, PrivateData: hello{"eve", lobby}.encode()})
		actortest.Next[*rdma.Established](eve)
		w.Wait()

		const lines = 3000
		begin := w.Now()
		for i := range lines {
			annSays.typed <- fmt.Sprint("line ", i)
		}
		w.Wait()
		if n := bob.count("ann: line"); n != lines {
			t.Errorf("bob has heard %d of %d lines", n, lines)
		}
		if d := w.Now().Sub(begin); d > 4*time.Second {
			t.Errorf("eve has held the room up for %v", d)
		}
		if n := bob.count("eve left"); n != 0 {
			t.Error("eve was let go before her time")
		}
		w.Advance(slowFor)
		w.Wait()
		if n := bob.count("eve left (too slow)"); n != 1 {
			t.Errorf("bob is told %d times that eve was let go", n)
		}
		annSays.typed <- "still here"
		w.Wait()
		if bob.count("ann: still here") != 1 {
			t.Error("the room does not go on")
		}
		leave(w, annSays, annEnded)
		leave(w, bob, bobEnded)
		w.Advance(time.Second)
	})
}
