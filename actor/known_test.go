package actor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// block makes something wait on a loop, until release is called or the test ends.
func (w *world) block(l *loop) (release func()) {
	w.Helper()
	free := make(chan struct{})
	if err := l.el.Post(func() { <-free }); err != nil {
		w.Fatal(err)
	}
	settle()
	freed := false
	release = func() {
		if !freed {
			freed = true
			close(free)
		}
		settle()
	}
	w.Cleanup(release)
	return release
}

// An identifier is known from add to remove: a report of its end that comes later does not make it
// known again, because nothing would remove it then.
func TestKnownUntilRemoved(t *testing.T) {
	var k known
	box := new(mailbox.Mailbox)
	described := k.add(box, knownID{state: states.Idle})
	k.storeAnswers([]*mailbox.Mailbox{box}, []IDInfo{{}})
	k.update(described, knownID{state: states.Bound})
	if id := k.ids[box]; id == nil || id.state != states.Bound || id.said == nil {
		t.Errorf("known is %+v, want the new state, and the loop's last answer", id)
	}
	k.remove(box)
	k.update(described, knownID{})
	if len(k.ids) != 0 {
		t.Error("an update has added an identifier that has ended")
	}
}

// The last known state of a blocked loop is reported, with the identifier's later history.
func TestInspectOfABlockedLoop(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{Credits: 8})
		p.client.send(p.c, NewSend([]byte("x")))
		next[*Received](p.server)
		time.Sleep(time.Minute)
		before := w.info(w.rt, p.c)
		asOf := time.Now()
		p.client.send(p.c, NewSend([]byte("y")))
		next[*Received](p.server)
		time.Sleep(time.Minute)
		release := w.block(w.rt.loops[0])
		for range 3 {
			p.client.send(p.c, NewSend([]byte("z"))) // in the mailbox
		}
		var got IDInfo
		if took := elapsed(func() { got = w.info(w.rt, p.c) }); took != answerIn {
			w.Errorf("Inspect took %v, want %v", took, answerIn)
		}
		if !got.AsOf.Equal(asOf) || got.Traffic != before.Traffic || got.Traffic.Sent != 1 || len(got.History) == 0 {
			w.Errorf("the counters are not those of then:\n%+v\n%+v", got, before)
		}
		if got.State != states.Connected || got.InState != before.InState+time.Minute+answerIn || got.Age != before.Age+time.Minute+answerIn ||
			got.ID != before.ID || !got.Owner.Equal(p.client.pid) || got.Mailbox != 3 || got.Peer != before.Peer || got.Device != "mem0" {
			w.Errorf("what it is now:\n%+v\n%+v", got, before)
		}
		l := w.rt.Loops()[0]
		if l.Blocked == nil || l.Blocked.For != 2*answerIn || l.Blocked.By.Kind != "post" || !strings.Contains(l.Blocked.By.Name, "block") {
			w.Errorf("the loop: %+v", l)
		}
		release()
		for range 3 {
			next[*Received](p.server)
		}
		got = w.info(w.rt, p.c)
		if !got.AsOf.Equal(time.Now()) || got.Traffic.Sent != 5 {
			w.Errorf("when it goes on: %+v", got)
		}
		if l := w.rt.Loops()[0]; l.Blocked != nil || !l.AsOf.Equal(time.Now()) {
			w.Errorf("the loop, when it goes on: %+v", l)
		}
	})
}

// The first Inspect of all may find the loop blocked, by an actor.
func TestFirstInspectOfABlockedLoop(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		free := make(chan struct{})
		ask := func(what string) {
			w.Helper()
			settle()
			infos := w.far.Inspect()
			if len(infos) != 2 {
				w.Fatalf("%s: %+v", what, infos)
			}
			if i := infos[0]; i.State != states.Listening || i.Listener == nil || i.Listener.Accepted != 1 || !i.AsOf.IsZero() {
				w.Errorf("%s: the listener: %+v", what, i)
			}
			if i := infos[1]; i.State != states.Connected || !i.AsOf.IsZero() || !i.PID.Equal(p.s) || i.Traffic != (Traffic{}) {
				w.Errorf("%s: the connection: %+v", what, i)
			}
		}
		p.server.reactWith(func(ctx actor.Context) {
			if ctx.Message() == "block" {
				<-free
			}
		})
		w.sys.Root.Send(p.server.pid, "block")
		ask("the first")
		ask("the second")
		time.Sleep(time.Minute)
		l := w.far.Loops()[0]
		if l.Blocked == nil || l.Blocked.By.Name != "actor "+p.server.pid.Id || l.Blocked.For < time.Minute || !l.AsOf.IsZero() || l.Turn != l.Blocked.For {
			w.Errorf("the loop: %+v, %+v", l, l.Blocked)
		}
		close(free)
		settle()
	}, Config{Loops: []eventloop.Config{{StallAfter: -1}}})
}

// An identifier that has ended since the last answer is not reported, and a new one is.
func TestBlockedAfterAChange(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		if n := len(w.rt.Inspect()); n != 1 {
			w.Fatalf("%d identifiers", n)
		}
		p.client.send(p.c, &Close{})
		until[*Closed](p.client)
		fresh, heir := w.rt.CreateID(p.client.pid, IDConfig{}), w.probe()
		p.client.send(fresh, &Handover{To: heir.pid})
		next[*Done](p.client)
		settle()
		w.block(w.rt.loops[0])
		infos := w.rt.Inspect()
		if len(infos) != 1 || !infos[0].PID.Equal(fresh) || infos[0].State != states.Idle || infos[0].ID == 0 ||
			!infos[0].Owner.Equal(heir.pid) || !infos[0].AsOf.IsZero() {
			w.Errorf("%+v", infos)
		}
	})
}

// The loop's last answer stays known when the identifier changes.
func TestBlockedAfterAnAnswer(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		before := w.info(w.rt, id)
		time.Sleep(time.Minute)
		p.send(id, &cmid.ResolveAddr{Dst: MustAddr("10.0.0.66:1")})
		settle()
		w.block(w.rt.loops[0])
		got := w.info(w.rt, id)
		if got.State != states.AddrQuery || got.InState != answerIn || !got.AsOf.Equal(before.AsOf) || len(got.History) != 1 {
			w.Errorf("%+v\n%+v", got, before)
		}
	})
}

// Loops that answer are reported as they are, whatever the blocked one does; and simultaneous
// callers share one answer of the loop.
func TestOneLoopOfThreeIsBlocked(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		came := make(chan arrival, 16)
		w.listen(w.farProbe(), IDConfig{Handler: handlers(came, echoing)})
		p := w.probe()
		for range w.dial(p, 9) {
			next[*Established](p)
		}
		settle()
		release := w.block(w.far.loops[1])
		before := w.far.loops[1].el.Stats().Posts
		done := make(chan []IDInfo)
		const many = 100
		for range many {
			go func() { done <- w.far.Inspect() }()
		}
		for range many {
			infos := <-done
			blocked := 0
			for _, i := range infos {
				if i.AsOf.IsZero() {
					blocked++
				}
				if i.AsOf.IsZero() != (i.Loop == w.far.loops[1].el.Name()) {
					w.Errorf("%+v", i)
				}
			}
			if len(infos) != 10 || blocked != 3 {
				w.Errorf("%d identifiers, %d of them of the blocked loop", len(infos), blocked)
			}
		}
		if n := w.far.loops[1].el.Stats().Posts - before; n != 1 {
			w.Errorf("the blocked loop was asked %d times", n)
		}
		posts := w.far.loops[2].el.Stats().Posts
		onLoop := make(chan int, 2)
		_ = w.far.loops[0].el.Post(func() { onLoop <- len(w.far.Inspect()); onLoop <- len(w.far.Loops()) })
		if ids, loops := <-onLoop, <-onLoop; ids != 4 || loops != 3 {
			w.Errorf("on a loop: %d identifiers, %d loops", ids, loops)
		}
		if n := w.far.loops[2].el.Stats().Posts - posts; n != 0 {
			w.Errorf("on a loop, another one was asked %d times", n)
		}
		release()
		for _, l := range w.far.loops {
			if len(l.known.ids) != len(l.ids) {
				w.Errorf("of %d identifiers %d are known", len(l.ids), len(l.known.ids))
			}
		}
	}, Config{Loops: make([]eventloop.Config, 3)})
}

// The known state of a loop does not change when an actor on it modifies the result of Inspect.
func TestBlockedAfterInspectOnTheLoop(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.probe()
		var ids []*actor.PID
		for i := range 50 {
			ids = append(ids, w.rt.CreateID(p.pid, IDConfig{}))
			if i%2 == 0 {
				p.send(ids[i], &cmid.ResolveAddr{Dst: MustAddr("10.0.0.66:1")})
			}
		}
		settle()
		w.onLoop(w.rt, func(*loop) {
			infos := w.rt.Inspect()
			for i, info := range infos {
				if i > 0 && infos[i-1].ID >= info.ID {
					w.Errorf("out of order: %d before %d", infos[i-1].ID, info.ID)
				}
			}
			clear(infos[:10])
		})
		w.block(w.rt.loops[0])
		for i, id := range ids {
			info := w.info(w.rt, id)
			waits := ""
			if i%2 == 0 {
				waits = "resolve_addr"
			}
			if info.AsOf.IsZero() || info.Waiting != waits {
				w.Errorf("identifier %d is known to wait for %q as of %v, want %q", i, info.Waiting, info.AsOf, waits)
			}
		}
	})
}

// After Shutdown there is nothing to report, even if it has left a loop blocked.
func TestInspectAfterShutdown(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		w.connect()
		release := w.block(w.rt.loops[0])
		_ = w.rt.Inspect() // the loop never answers this
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := w.rt.Shutdown(ctx); err == nil {
			w.Error("a blocked loop was shut down")
		}
		took := elapsed(func() {
			if infos, loops := w.rt.Inspect(), w.rt.Loops(); len(infos) != 0 || len(loops) != 1 {
				w.Errorf("after Shutdown: %+v, %+v", infos, loops)
			}
		})
		if took != 0 {
			w.Errorf("after Shutdown, Inspect has waited %v", took)
		}
		release()
		_ = w.far.Shutdown(context.Background())
	})
}

// Ten thousand identifiers on a blocked loop, while they come and go on another.
func TestInspectOfManyOnABlockedLoop(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		const many = 10_000
		for range many {
			w.rt.CreateID(nil, IDConfig{})
		}
		settle()
		if n := len(w.rt.Inspect()); n != many {
			w.Fatalf("%d identifiers", n)
		}
		release := w.block(w.rt.loops[0])
		asked := make(chan error)
		for range 4 {
			go func() {
				infos := w.rt.Inspect()
				for i := 1; i < len(infos); i++ {
					if infos[i-1].ID >= infos[i].ID || infos[i].AsOf.IsZero() {
						asked <- fmt.Errorf("out of order: %+v", infos[i])
						return
					}
				}
				if len(infos) != many {
					asked <- fmt.Errorf("%d identifiers", len(infos))
					return
				}
				asked <- nil
			}()
		}
		for range 4 {
			if err := <-asked; err != nil {
				w.Error(err)
			}
		}
		release()
	})
}
