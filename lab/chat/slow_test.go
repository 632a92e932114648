package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/lab/chat/room"
)

// script is a console whose input comes from the test. It records what was shown.
type script struct {
	typed  chan string
	person bool // a terminal; else a pipe
	ended  chan error
	mu     sync.Mutex
	shown  []string
}

func (s *script) ReadLine() (string, error) {
	if l, ok := <-s.typed; ok {
		return l, nil
	}
	return "", io.EOF
}

func (s *script) Print(l string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = append(s.shown, l)
	return nil
}

func (s *script) Status(l string) { _ = s.Print("-- " + l) }
func (s *script) Attended() bool  { return s.person }
func (s *script) Close() error    { return nil }

// count returns how many of the shown lines contain text.
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

// serve starts the chat's server on a machine of the world.
func serve(w *actortest.World, rt *rdma.Runtime, addr string) {
	w.T().Helper()
	if _, err := host(w.T().Context(), rt, w.System(), addr, slog.New(slog.DiscardHandler)); err != nil {
		w.T().Fatal(err)
	}
}

// enterWorld starts the chat's client on a machine of the world.
func enterWorld(w *actortest.World, rt *rdma.Runtime, addr, nick, where string, person bool) *script {
	w.T().Helper()
	s := &script{typed: make(chan string), person: person, ended: make(chan error, 1)}
	ctx, leave := context.WithCancel(w.T().Context())
	go func() {
		s.ended <- talk(ctx, leave, s, rt, w.System(), settings{addr: addr, hello: hello{nick, where}})
		leave()
	}()
	w.Wait()
	if s.count("you are "+nick) != 1 {
		w.T().Fatalf("%s sees %q", nick, s.shown)
	}
	return s
}

// leave ends the user's input and waits for the client's goodbye.
func leave(w *actortest.World, all ...*script) {
	w.T().Helper()
	for _, s := range all {
		close(s.typed)
		if err := <-s.ended; err != nil {
			w.T().Error(err)
		}
	}
	w.Advance(time.Second)
}

// enterProbe sends hello through a Probe, which reads only when the test does.
func enterProbe(w *actortest.World, rt *rdma.Runtime, nick, where string) *actortest.Probe {
	w.T().Helper()
	p := w.Probe()
	id := rt.CreateID(p.PID())
	p.Request(id, &rdma.Dial{Addr: chatAddr, PrivateData: []byte(version)})
	actortest.Next[*rdma.Established](p)
	p.Request(id, rdma.NewSend(hello{nick, where}.encode()))
	for _, want := range []string{"you", "notice"} {
		if l, err := room.Decode(actortest.Next[*rdma.Received](p).Data); l.Type != want {
			w.T().Fatalf("%s got %+v, %v, want %s", nick, l, err, want)
		}
	}
	return p
}

// A member repeatedly takes nothing for a while and then catches up, while another member writes to
// it without a pause. No other member is affected, in other rooms or in its own.
func TestHostileReader(t *testing.T) {
	for _, where := range []string{"cellar", room.Lobby} {
		t.Run(where, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				serve(w, w.Runtime(), chatAddr)
				ann := enterWorld(w, w.Host("mem1", "10.0.0.2"), chatAddr, "ann", room.Lobby, false)
				bob := enterWorld(w, w.Host("mem2", "10.0.0.3"), chatAddr, "bob", room.Lobby, false)
				mallory := enterWorld(w, w.Host("mem3", "10.0.0.4"), chatAddr, "mallory", where, false)
				eve := enterProbe(w, w.Host("mem4", "10.0.0.5"), "eve", where)
				const rounds, lines = 3, 600
				flood := make(chan struct{})
				go func() {
					defer close(flood)
					for range rounds * lines {
						mallory.typed <- "flood"
					}
				}()
				said := 0
				for range rounds {
					for range 22 {
						w.Advance(100 * time.Millisecond)
						ann.typed <- fmt.Sprintf("line %d.", said)
						w.Wait() // no time passes
						if bob.count(fmt.Sprintf("ann: line %d.", said)) != 1 {
							t.Fatalf("ann's line %d is not there at once", said)
						}
						said++
					}
					for floods := 0; floods < lines; {
						l, err := room.Decode(actortest.Next[*rdma.Received](eve).Data)
						if err != nil {
							t.Fatal(err)
						}
						if strings.HasPrefix(l.Text, "flood") {
							floods++
						}
					}
				}
				<-flood
				leave(w, ann, bob, mallory)
			})
		})
	}
}

// If a member writes faster than its pace, only its own lines wait.
func TestFlooder(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		ann := enterWorld(w, w.Host("mem1", "10.0.0.2"), chatAddr, "ann", room.Lobby, false)
		bob := enterWorld(w, w.Host("mem2", "10.0.0.3"), chatAddr, "bob", room.Lobby, false)
		mallory := enterWorld(w, w.Host("mem3", "10.0.0.4"), chatAddr, "mallory", room.Lobby, false)
		const lines = 2 * pace
		flood := make(chan struct{})
		go func() {
			defer close(flood)
			for range lines {
				mallory.typed <- "flood"
			}
		}()
		w.Wait()
		ann.typed <- "hello"
		w.Wait()
		if bob.count("ann: hello") != 1 {
			t.Error("ann waits for mallory")
		}
		w.Advance(time.Second)
		if n := bob.count("mallory: flood"); n < pace/2 || n > burst+pace+1 {
			t.Errorf("%d lines of mallory's in a second", n)
		}
		<-flood
		leave(w, ann, mallory)
		if n := bob.count("mallory: flood"); n != lines {
			t.Errorf("bob has heard %d of %d lines", n, lines)
		}
		leave(w, bob)
	})
}

// If a member has caught up and is slow again, its time starts again.
func TestSlowTwice(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		ann := enterWorld(w, w.Host("mem1", "10.0.0.2"), chatAddr, "ann", room.Lobby, false)
		eve := enterProbe(w, w.Host("mem2", "10.0.0.3"), "eve", room.Lobby)
		const lines = 1000
		w.Advance(helloFor)
		for range lines {
			ann.typed <- "line"
		}
		w.Advance(patience - 2*time.Second) // about 1 s before its time is up
		for range lines {
			actortest.Next[*rdma.Received](eve)
		}
		for range lines {
			ann.typed <- "line"
		}
		w.Advance(patience - time.Second)
		if ann.count("eve left") != 0 {
			t.Error("eve was let go for having been slow before")
		}
		w.Advance(patience + 2*time.Second)
		if ann.count("eve left (too slow)") != 1 {
			t.Error("eve was not let go the second time")
		}
		leave(w, ann)
	})
}

// A member that stops reading delays no other, and is disconnected. No other member misses a line.
func TestStalledReader(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		ann := enterWorld(w, w.Host("mem1", "10.0.0.2"), chatAddr, "ann", room.Lobby, false)
		bob := enterWorld(w, w.Host("mem2", "10.0.0.3"), chatAddr, "bob", room.Lobby, false)
		enterProbe(w, w.Host("mem3", "10.0.0.4"), "eve", room.Lobby)

		const lines = 3 * pace
		begin := w.Now()
		for i := range lines {
			ann.typed <- fmt.Sprint("line ", i)
		}
		w.Advance(100 * time.Millisecond) // for the retained lines
		if n := bob.count("ann: line"); n != lines {
			t.Errorf("bob has heard %d of %d lines", n, lines)
		}
		if d := w.Now().Sub(begin); d > (lines/pace)*time.Second+time.Second {
			t.Errorf("eve has delayed the room: it took %v", d)
		}
		if n := bob.count("eve left"); n != 0 {
			t.Error("eve was let go before her time")
		}
		w.Advance(2 * patience)
		if n := bob.count("eve left (too slow)"); n != 1 {
			t.Errorf("bob reads %d times that eve was let go", n)
		}
		ann.typed <- "still here"
		w.Wait()
		if bob.count("ann: still here") != 1 {
			t.Error("the room does not go on")
		}
		leave(w, ann, bob)
	})
}

// Lines that do not fit into a backlog are counted, and reported in their place.
func TestMissedLines(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		ann := enterWorld(w, w.Host("mem1", "10.0.0.2"), chatAddr, "ann", room.Lobby, false)
		eve := enterProbe(w, w.Host("mem2", "10.0.0.3"), "eve", room.Lobby)
		const lines = 600
		text := strings.Repeat("x", room.MaxText-10)
		for range lines {
			ann.typed <- text
		}
		w.Advance(time.Second)
		heard, missed := 0, 0
		for missed == 0 {
			l, err := room.Decode(actortest.Next[*rdma.Received](eve).Data)
			if err != nil {
				t.Fatal(err)
			}
			if l.Type == "say" {
				heard++
			} else if _, err := fmt.Sscanf(l.Text, "%d lines left out", &missed); err != nil {
				t.Fatalf("eve got %+v", l)
			}
		}
		if heard+missed != lines || heard > most/len(text)+window+64 {
			t.Errorf("eve has heard %d lines of %d, and missed %d", heard, lines, missed)
		}
		ann.typed <- "go on"
		if l, _ := room.Decode(actortest.Next[*rdma.Received](eve).Data); l.Text != "go on" {
			t.Errorf("eve got %+v", l)
		}
		leave(w, ann)
	})
}

// A connection is closed if it does not send a valid hello soon.
func TestStrangers(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		rt := w.Host("mem1", "10.0.0.2")
		p := w.Probe()
		p.Request(rt.CreateID(p.PID()), &rdma.Dial{Addr: chatAddr, PrivateData: []byte("chat/1\x00ann\x00lobby")})
		if r := actortest.Next[*rdma.Rejected](p); string(r.PrivateData) != "this is a chat/2 server" {
			t.Errorf("an old client gets %q", r.PrivateData)
		}
		actortest.Next[*rdma.Closed](p)

		p.Request(rt.CreateID(p.PID()), &rdma.Dial{Addr: chatAddr, PrivateData: []byte(version)})
		actortest.Next[*rdma.Established](p)
		begin := w.Now()
		actortest.Next[*rdma.Disconnected](p)
		if d := w.Now().Sub(begin); d != helloFor {
			t.Errorf("somebody who says nothing was let go after %v", d)
		}
		actortest.Next[*rdma.Closed](p)

		p.Request(rt.CreateID(p.PID()), &rdma.Dial{Addr: chatAddr, PrivateData: []byte(version)})
		actortest.Next[*rdma.Established](p)
		p.Request(p.Sender(), rdma.NewSend(hello{"a b", room.Lobby}.encode()))
		if l, err := room.Decode(actortest.Next[*rdma.Received](p).Data); l.Type != "refused" {
			t.Errorf("a wrong name gets %+v, %v", l, err)
		}
		actortest.Next[*rdma.Disconnected](p)
		actortest.Next[*rdma.Closed](p)
	})
}

// RoCE has room for 44 bytes of private data.
func TestLongNamesOnRoCE(t *testing.T) {
	actortest.Run(t, actortest.Config{InfiniBand: true}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		nick, where := strings.Repeat("n", room.MaxNick), strings.Repeat("r", room.MaxRoom)
		ann := enterWorld(w, w.Host("mem1", "10.0.0.2"), chatAddr, nick, where, false)
		leave(w, ann)
	})
}
