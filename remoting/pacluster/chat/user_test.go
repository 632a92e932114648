package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/examples/chat/console"
	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// These tests play people, rooms and the directory in one actor system, in virtual time. A grain is
// an actor here, which a test may lose in every way.

// script is a console whose person types a test's lines. It keeps the lines shown.
type script struct {
	in    chan string
	mu    sync.Mutex
	shown []string
}

func (s *script) ReadLine() (string, error) {
	if l, ok := <-s.in; ok {
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
func (s *script) Attended() bool  { return false }
func (s *script) Close() error    { return nil }

// all returns the output, a line each.
func (s *script) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.shown, "\n")
}

// grains stands for the cluster.
type grains struct {
	w    *actortest.World
	mu   sync.Mutex
	pids map[string]*actor.PID
	away bool // searches fail
}

func newGrains(w *actortest.World) *grains { return &grains{w: w, pids: make(map[string]*actor.PID)} }

// find returns a grain, and makes it if it does not exist.
func (g *grains) find(kind, id string) *actor.PID {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away {
		return nil
	}
	pid := g.pids[kind+id]
	if pid != nil {
		if _, there := g.w.System().ProcessRegistry.GetLocal(pid.Id); !there {
			pid = nil // it has ended
		}
	}
	if pid == nil {
		producer := newHall
		if kind == directoryKind {
			producer = newDirectory
		}
		pid = g.w.System().Root.Spawn(actor.PropsFromProducer(producer, g.w.Runtime().OnLoop()))
		g.w.System().Root.Send(pid, &cluster.ClusterInit{Identity: cluster.NewClusterIdentity(id, kind)})
		g.pids[kind+id] = pid
	}
	return pid
}

// forget drops a grain, so that the next search makes it anew.
func (g *grains) forget(kind, id string) *actor.PID {
	g.mu.Lock()
	defer g.mu.Unlock()
	pid := g.pids[kind+id]
	delete(g.pids, kind+id)
	return pid
}

// stop ends a grain in order, as when its member leaves.
func (g *grains) stop(kind, id string) {
	g.w.System().Root.Poison(g.forget(kind, id))
	g.w.Wait()
}

func (g *grains) setAway(away bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = away
}

// somebody is a person of a test.
type somebody struct {
	*script
	away  atomic.Bool // searches fail
	w     *actortest.World
	pid   *actor.PID
	ended chan error
}

func (g *grains) person(nick, in string) *somebody {
	return g.carried(&carried{nick: nick, room: in})
}

func (g *grains) carried(who *carried) *somebody {
	s := &somebody{script: &script{in: make(chan string)}, w: g.w, ended: make(chan error, 1)}
	in := console.NewInput(s, "the room")
	u := newUser(who, s, in, s.ended)
	u.find = func(kind, id string) *actor.PID {
		if s.away.Load() {
			return nil
		}
		return g.find(kind, id)
	}
	root := g.w.System().Root
	s.pid = root.Spawn(actor.PropsFromProducer(func() actor.Actor { return u }, g.w.Runtime().OffLoop()))
	lines := make(chan any)
	go read(in, lines, func() {})
	for range who.waiting { // typed before, and unfinished
		s.in <- ""
		<-lines
	}
	go func() {
		for m := range lines {
			root.Send(s.pid, m)
			if _, last := m.(*quit); last {
				return
			}
		}
	}()
	g.w.Advance(time.Millisecond)
	return s
}

// type types lines, and waits until all have been handled.
func (s *somebody) typeLines(lines ...string) {
	for _, l := range lines {
		s.in <- l
	}
	s.w.Wait()
}

// leave ends the person's input, and waits for the end of the actor.
func (s *somebody) leave() {
	s.w.T().Helper()
	close(s.in)
	if err := <-s.ended; err != nil {
		s.w.T().Errorf("leaving: %v", err)
	}
	_ = s.w.System().Root.StopFuture(s.pid).Wait()
	s.w.Wait()
}

// saw checks that lines were shown, in that order, each once.
func (s *somebody) saw(lines ...string) {
	s.w.T().Helper()
	all, at := s.all(), 0
	for _, l := range lines {
		i := strings.Index(all, l)
		if i < at || strings.Count(all, l) != 1 {
			s.w.T().Errorf("%q is there %d times, at %d after %d, in\n%s", l, strings.Count(all, l), i, at, all)
		}
		at = i
	}
}

func (s *somebody) sawNot(text string) {
	s.w.T().Helper()
	if all := s.all(); strings.Contains(all, text) {
		s.w.T().Errorf("%q is in\n%s", text, all)
	}
}

func TestTalk(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		ann.saw("you are ann in lobby with 0 others", "bob joined")
		ann.typeLines("hello", "/msg BOB psst", "/who", "/rooms", "/msg nobody x")
		bob.saw("[lobby] ann: hello", "(private) ann: psst")
		ann.saw("in lobby: ann, bob")
		ann.saw("rooms: lobby", "nobody here is called nobody")
		bob.typeLines("/room cellar", "alone", "/nick bobby", "/rooms", "/who")
		w.Advance(time.Second)
		ann.saw("bob went to cellar")
		bob.saw("you are bob in cellar with 0 others", "bob is now bobby", "in cellar: bobby")
		bob.saw("rooms: cellar, lobby")
		bob.typeLines("/room lobby", "/nick ann")
		w.Advance(time.Second)
		bob.saw("(earlier) [lobby] ann: hello")
		bob.saw(`-- the nickname "ann" is taken`)
		ann.saw("bobby joined")
		bob.leave()
		ann.saw("bobby left")
		ann.leave()
	})
}

// A room that ends in order is made anew. The people in it do not notice, and no line is lost or
// duplicated.
func TestRoomMoves(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		for i := range 10 {
			ann.in <- fmt.Sprintf("line %d.", 2*i)
			g.stop(hallKind, room.Lobby)
			ann.in <- fmt.Sprintf("line %d.", 2*i+1)
			w.Advance(time.Second)
		}
		w.Advance(2 * gatherFor)
		ann.typeLines("/who")
		for i := range 20 {
			bob.saw(fmt.Sprintf("ann: line %d.", i))
		}
		bob.saw("ann: line 0.", "ann: line 1.", "ann: line 7.", "ann: line 18.", "ann: line 19.")
		for _, s := range []*somebody{ann, bob} {
			s.sawNot("left")
			s.sawNot("may not")
			s.sawNot("lost")
			s.sawNot("gone")
		}
		ann.saw("bob joined", "in lobby: ann, bob")
		ann.leave()
		bob.leave()
	})
}

// lose removes a grain as if its member were killed: its watchers learn that its address is gone.
func (g *grains) lose(kind, id string, watchers ...*somebody) {
	pid := g.forget(kind, id)
	for _, s := range watchers {
		proc, _ := g.w.System().ProcessRegistry.Get(s.pid)
		proc.SendSystemMessage(s.pid, &actor.Terminated{Who: pid, Why: actor.TerminatedReason_AddressTerminated})
	}
	g.w.System().Root.Stop(pid)
	g.w.Wait()
}

// deaf is a room that ignores lines.
type deaf struct{ hall }

func (d *deaf) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*say); !ok {
		d.hall.Receive(ctx)
	}
}

// A room that is killed may have received the last lines. They are reported, and not sent again.
func TestRoomIsLost(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		d := &deaf{*newHall().(*hall)}
		pid := w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return d }, w.Runtime().OnLoop()))
		w.System().Root.Send(pid, &cluster.ClusterInit{Identity: cluster.NewClusterIdentity(room.Lobby, hallKind)})
		g.pids[hallKind+room.Lobby] = pid
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		ann.typeLines("one", "two")
		g.lose(hallKind, room.Lobby, ann, bob)
		ann.typeLines("three", "/who")
		w.Advance(time.Second)
		ann.saw("2 lines may not have arrived", "in lobby: ann, bob")
		bob.saw("ann: three")
		bob.sawNot("one")
		ann.sawNot("is lost")
		ann.leave()
		bob.leave()
	})
}

// When only the link to a room is lost, the person gets the lines of that time, once.
func TestLinkIsLost(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		ann.typeLines("before")
		hallPID := g.find(hallKind, room.Lobby)
		g.setAway(true)
		for _, cut := range []struct{ of, who *actor.PID }{{bob.pid, hallPID}, {hallPID, bob.pid}} {
			proc, _ := w.System().ProcessRegistry.Get(cut.of)
			proc.SendSystemMessage(cut.of, &actor.Terminated{Who: cut.who, Why: actor.TerminatedReason_AddressTerminated})
		}
		w.Wait()
		ann.typeLines("meanwhile")
		g.setAway(false)
		w.Advance(time.Second)
		ann.typeLines("after")
		bob.saw("ann: before", "ann: meanwhile", "ann: after")
		ann.saw("bob joined", "bob is lost", "bob is back")
		bob.leave()
		ann.leave()
	})
}

// A directory that is made anew gets its names from the people. If two people have the same name,
// the second has to take another.
func TestDirectoryIsLost(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", "cellar"), g.person("bob", room.Lobby)
		g.lose(directoryKind, everybody, ann, bob)
		w.Advance(time.Second)
		bob.typeLines("/msg ann still there?", "/rooms")
		ann.saw("(private) bob: still there?")
		bob.saw("rooms: cellar, lobby")

		ann.away.Store(true)
		g.lose(directoryKind, everybody, ann, bob)
		other := g.person("ann", "attic")
		ann.away.Store(false)
		w.Advance(time.Second)
		other.sawNot("taken")
		ann.saw(`the nickname "ann" is taken; /nick takes another one`)
		ann.typeLines("waits", "/nick anna")
		w.Advance(time.Second)
		ann.saw("you are ann in cellar", "is taken", "you are anna in cellar")
		bob.sawNot("waits")
		bob.typeLines("/room cellar")
		w.Advance(time.Second)
		bob.saw("(earlier) [cellar] anna: waits")
		for _, s := range []*somebody{ann, bob, other} {
			s.leave()
		}
	})
}

// A room may not know yet that the previous owner of a person's name has gone.
func TestGhost(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		dir := g.find(directoryKind, everybody)
		proc, _ := w.System().ProcessRegistry.Get(dir)
		proc.SendSystemMessage(dir, &actor.Terminated{Who: ann.pid, Why: actor.TerminatedReason_AddressTerminated})
		w.Wait()
		again := g.person("ann", room.Lobby)
		w.Advance(time.Second)
		again.sawNot("you are ann")
		hallPID := g.find(hallKind, room.Lobby)
		proc, _ = w.System().ProcessRegistry.Get(hallPID)
		proc.SendSystemMessage(hallPID, &actor.Terminated{Who: ann.pid, Why: actor.TerminatedReason_AddressTerminated})
		w.Advance(time.Second)
		again.saw("you are ann in lobby with 1 other")
		bob.saw("ann is lost", "ann joined")
		_ = w.System().Root.StopFuture(ann.pid).Wait()
		close(ann.in)
		again.leave()
		bob.leave()
	})
}

// The others see the leaving of a person that happens while the room is being made anew.
func TestLeavesWithoutRoom(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		ann.away.Store(true)
		g.stop(hallKind, room.Lobby)
		close(ann.in)
		w.Advance(time.Second)
		ann.away.Store(false)
		if err := <-ann.ended; err != nil {
			t.Error(err)
		}
		w.Wait()
		bob.saw("ann left")
		_ = w.System().Root.StopFuture(ann.pid).Wait()
		bob.leave()
	})
}

// The others also see a leaving if the room ended just before the goodbye.
func TestLeavesWithRoom(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		w.System().Root.Poison(g.forget(hallKind, room.Lobby))
		close(ann.in)
		if err := <-ann.ended; err != nil {
			t.Error(err)
		}
		w.Wait()
		bob.saw("ann left")
		if d := w.Elapsed(); d > time.Second {
			t.Errorf("that takes %v", d)
		}
		_ = w.System().Root.StopFuture(ann.pid).Wait()
		bob.leave()
	})
}

// A person ends soon if their name is taken, or if they leave while no room can be reached.
func TestEnds(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann := g.person("ann", room.Lobby)
		second := g.person("Ann", room.Lobby)
		if err := <-second.ended; err == nil || !strings.Contains(err.Error(), `looks like "ann"`) {
			t.Errorf("a second ann ends with %v", err)
		}
		close(second.in)
		_ = w.System().Root.StopFuture(second.pid).Wait()

		g.setAway(true)
		g.lose(hallKind, room.Lobby, ann)
		begun := w.Now()
		ann.typeLines("one", "two")
		close(ann.in)
		if err := <-ann.ended; err == nil || !strings.Contains(err.Error(), "2 lines not sent") {
			t.Errorf("ann ends with %v", err)
		}
		if d := w.Now().Sub(begun); d > console.PipeFor {
			t.Errorf("that takes %v", d)
		}
		_ = w.System().Root.StopFuture(ann.pid).Wait()
	})
}

// Waiting lines at the end of a session are sent in the next one.
func TestCarried(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		bob, ann := g.person("bob", room.Lobby), g.person("ann", room.Lobby)
		g.setAway(true)
		g.lose(hallKind, room.Lobby, ann, bob)
		ann.typeLines("waits")
		res, err := w.System().Root.RequestFuture(ann.pid, &carry{}, time.Second).Result()
		if err != nil {
			t.Fatal(err)
		}
		_ = w.System().Root.StopFuture(ann.pid).Wait()
		close(ann.in)
		g.setAway(false)
		w.Advance(time.Second)
		next := g.carried(res.(*carried))
		w.Advance(time.Second)
		bob.saw("ann: waits")
		next.leave()
		bob.leave()
	})
}

// A person sees that lines are missing.
func TestLinesLeftOut(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		proc, _ := w.System().ProcessRegistry.Get(bob.pid)
		proc.SendUserMessage(bob.pid, &actor.MessageEnvelope{
			Message: &heard{N: 4, Sent: 3, Line: room.Line{Type: "say", From: "ann", Room: room.Lobby, Text: "third"}},
			Sender:  g.find(hallKind, room.Lobby),
		})
		w.Wait()
		bob.saw("1 line left out", "ann: third")
		ann.leave()
		bob.leave()
	})
}

// The unread lines of a person are bounded. They wait, and lines beyond the bound are left out, and
// counted.
func TestDeafPerson(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann := g.person("ann", room.Lobby)
		var got []*heard // received by an actor that reports none of them
		deaf := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*heard); ok {
				got = append(got, m)
			}
		}, w.Runtime().OnLoop()))
		from := func(kind, id string, msg any) {
			w.System().Root.RequestWithCustomSender(g.find(kind, id), msg, deaf)
			w.Wait()
		}
		for _, grain := range []struct {
			kind, id, say string
			enter         any
		}{
			{hallKind, room.Lobby, "", &enter{Nick: "deaf"}},
			{directoryKind, everybody, "/msg deaf ", &take{Nick: "deaf", Room: room.Lobby}},
		} {
			got = nil
			from(grain.kind, grain.id, grain.enter)
			const lines, length = 1000, 4000
			for range lines {
				ann.in <- grain.say + strings.Repeat("x", length)
			}
			w.Wait()
			if len(got) != window {
				t.Errorf("%s: %d lines are under way", grain.kind, len(got))
			}
			for seen := 0; seen < len(got); w.Wait() {
				seen = len(got)
				from(grain.kind, grain.id, &taken{got[seen-1].N})
			}
			from(grain.kind, grain.id, &taken{1 << 62})
			last := got[len(got)-1]
			kept := len(got) * (length + lineBytes)
			if last.Line.Text != "" || int(last.N) < lines || kept < backlogMost || kept > backlogMost+2*window*length {
				t.Errorf("%s: %d lines come, up to %d: %.20q", grain.kind, len(got), last.N, last.Line.Text)
			}
			for i, m := range got[:len(got)-1] {
				if m.N != uint64(i+1) {
					t.Errorf("%s: line %d has number %d", grain.kind, i+1, m.N)
				}
			}
			from(grain.kind, grain.id, &leave{"left"})
		}
		_ = w.System().Root.StopFuture(deaf).Wait()
		ann.leave()
	})
}

// A person that reads gets all lines, however many are written.
func TestManyLines(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob := g.person("ann", room.Lobby), g.person("bob", room.Lobby)
		for i := range 10 * window {
			ann.in <- fmt.Sprintf("line %d.", i)
			ann.in <- fmt.Sprintf("/msg bob secret %d.", i)
		}
		w.Advance(time.Second)
		for i := range 10 * window {
			bob.saw(fmt.Sprintf("[lobby] ann: line %d.", i))
			bob.saw(fmt.Sprintf("(private) ann: secret %d.", i))
		}
		bob.sawNot("left out")
		ann.leave()
		bob.leave()
	})
}

// A room that is lost together with a person cannot announce that they are gone: the people who
// return see it. A person who returns under another name is not announced as gone.
func TestGone(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		g := newGrains(w)
		ann, bob, cat := g.person("ann", room.Lobby), g.person("bob", room.Lobby), g.person("cat", room.Lobby)
		bob.away.Store(true)
		cat.away.Store(true)
		g.lose(hallKind, room.Lobby, ann, bob, cat)
		_ = w.System().Root.StopFuture(bob.pid).Wait()
		cat.typeLines("/nick kate")
		w.Advance(time.Second)
		cat.away.Store(false)
		dan := g.person("dan", room.Lobby)
		w.Advance(gatherFor)
		ann.saw("cat joined", "dan joined", "cat is now kate", "bob is gone")
		cat.saw("cat is now kate", "dan joined", "bob is gone")
		dan.sawNot("bob")
		for _, s := range []*somebody{ann, cat, dan} {
			s.sawNot("cat is gone")
			s.sawNot("ann is gone")
			s.sawNot("ann is back")
		}
		g.lose(hallKind, room.Lobby, ann, cat, dan)
		w.Advance(2 * gatherFor)
		ann.saw("bob is gone") // once

		late := cat // the room has already announced the missing people
		late.away.Store(true)
		g.lose(hallKind, room.Lobby, ann, cat, dan)
		w.Advance(2 * gatherFor)
		ann.saw("kate is gone")
		late.away.Store(false)
		w.Advance(time.Second)
		ann.saw("kate is gone", "kate is back")
		close(bob.in)
		for _, s := range []*somebody{ann, cat, dan} {
			s.leave()
		}
	})
}
