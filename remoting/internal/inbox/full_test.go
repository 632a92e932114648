package inbox

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// peer is a connection whose messages are delivered to the targets that their first byte names.
type peer struct {
	*rig
	probe *actortest.Probe
	id    *actor.PID
	came  atomic.Int32 // RDMA messages
}

const credits = 8

// connect makes a peer connect to the link's actor.
func (r *rig) connect(names string) *peer {
	p := &peer{rig: r, probe: r.Probe()}
	r.received = func(m *rdma.Received) {
		p.came.Add(1)
		i := m.Data[0]
		r.in.Deliver(actor.NewPID("", names[i:i+1]), &note{int(m.Data[1])}, 1000, m)
	}
	cfg := rdma.IDConfig{Credits: credits, MaxMessage: 64}
	lis := r.Runtime().CreateID(r.link, cfg)
	r.do(func(*Inbox) { r.System().Root.RequestWithCustomSender(lis, &rdma.Serve{Addr: ":7471"}, r.link) })
	p.id = r.Host("mem1", "10.0.0.2").CreateID(p.probe.PID(), cfg)
	p.probe.Request(p.id, &rdma.Dial{Addr: "10.0.0.1:7471"})
	actortest.Next[*rdma.Established](p.probe)
	return p
}

// send sends n notes to the target at i, the first one with the number from.
func (p *peer) send(i, from, n int) {
	for k := range n {
		p.probe.Send(p.id, rdma.NewSend([]byte{byte(i), byte(from + k)}))
	}
	p.Wait()
}

// small is an inbox that is full after 16 of the peer's messages, 7 of which fill a window.
var small = Config{Window: 8 << 10, Bytes: 16 * 1128}

// A full inbox stops only its peer; it continues when a quarter was consumed.
func TestFullStopsThePeer(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a, b := r.spawnTarget("a", opts...), r.spawnTarget("b", opts...)
		a.suspend()
		p := r.connect("ab")
		p.send(0, 0, 40)
		p.send(1, 0, 20)
		if n := p.came.Load(); n != 15+credits {
			r.t.Errorf("%d RDMA messages came, want %d", n, 15+credits)
		}
		if full, retained := r.isFull(); !full || retained != credits {
			r.t.Errorf("full: %v, retained: %d", full, retained)
		}
		a.resume()
		r.Advance(soon)
		a.wantNotes(r, "the one that was slow", 40)
		b.wantNotes(r, "the one behind it", 20)
		if full, retained := r.isFull(); len(r.refusals()) != 0 || full || retained != 0 {
			r.t.Errorf("%d refused; full: %v, retained: %d", len(r.refusals()), full, retained)
		}
	}, "bounded")
}

// When a target stops its link for too long, its waiting messages are refused, once; the others
// continue, and so does the target, when it consumes again.
func TestPatienceIsOver(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a, b := r.spawnTarget("a", opts...), r.spawnTarget("b", opts...)
		a.suspend()
		p := r.connect("ab")
		p.send(0, 0, 100)
		p.send(1, 0, 20)
		r.Advance(defaultPatience - time.Second)
		b.wantNotes(r, "while there is patience", 0)
		r.Advance(2 * time.Second)
		b.wantNotes(r, "when it is over", 20)
		lost := make(map[int]bool)
		for _, f := range r.refusals() {
			n := f.msg.(*note).n
			if f.target != "a" || !errors.Is(f.why, ErrSlow) || !errors.Is(f.why, unix.ENOBUFS) || lost[n] {
				r.t.Errorf("refused: %+v", f)
			}
			lost[n] = true
		}
		a.resume()
		r.Advance(time.Minute)
		p.send(0, 100, 10)
		r.Advance(time.Minute)
		got := a.notes()
		if len(got)+len(lost) != 110 || len(lost) == 0 {
			r.t.Errorf("%d received, %d refused, of 110", len(got), len(lost))
		}
		for i, n := range got {
			if lost[n] || i > 0 && n <= got[i-1] {
				r.t.Errorf("%d was refused: %v, and comes behind %d", n, lost[n], got[i-1])
			}
		}
		if n := len(got); n < 10 || got[n-1] != 109 {
			r.t.Errorf("what was sent after it had gone on did not come: %v", got)
		}
	}, "bounded")
}

// Close refuses the waiting messages, and releases the retained ones.
func TestCloseInTheMiddle(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		a.suspend()
		p := r.connect("a")
		p.send(0, 0, 40)
		r.do(func(in *Inbox) { in.Close() })
		r.Advance(time.Minute)
		a.resume()
		r.Advance(time.Minute)
		got := a.notes()
		if n := len(got) + len(r.refusals()); n != 40 {
			r.t.Errorf("%d received, %d refused, of 40", len(got), len(r.refusals()))
		}
		for _, f := range r.refusals() {
			if !errors.Is(f.why, ErrClosed) || !errors.Is(f.why, unix.ECANCELED) {
				r.t.Errorf("refused: %+v", f)
			}
		}
		a.wantNotes(r, "what it had", len(got))
	}, "bounded")
}

// crowd spawns targets that have one message each, and that together fill the inbox.
func (r *rig) crowd(n int, opts []actor.PropsOption) (all []*target) {
	for i := range n {
		all = append(all, r.spawnTarget(fmt.Sprint("crowd", i), opts...))
	}
	for _, a := range all { // no longer off the loop, where that happens
		r.deliver(a.pid, 1, &note{0})
		r.Wait()
	}
	return all
}

// Consumed bytes do not fill an inbox, even before they were looked at.
func TestConsumedBytesDoNotCount(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		for _, a := range r.crowd(40, opts) {
			r.deliver(a.pid, 1000, &note{1})
			a.wantNotes(r, "one of many", 2)
		}
		r.Wait()
		if full, _ := r.isFull(); full {
			r.t.Error("the inbox is full")
		}
	})
}

// Many targets that are blocked fill an inbox without any that has more than its window. When they
// continue, so does the link, immediately.
func TestManyThatBlock(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		all := r.crowd(20, opts)
		b := r.spawnTarget("b", opts...)
		for _, a := range all {
			a.suspend()
		}
		p := r.connect("b")
		p.send(0, 0, 1)
		r.Advance(spawnTime)
		for _, a := range all {
			r.deliver(a.pid, 1000, &note{1})
		}
		p.send(0, 1, 19)
		r.do(func(in *Inbox) {
			if !in.full || len(in.slow) != 0 {
				r.t.Errorf("full: %v, %d lines wait", in.full, len(in.slow))
			}
		})
		for _, a := range all {
			a.resume()
		}
		b.wantNotes(r, "without time passing", 20)
		for _, a := range all {
			a.wantNotes(r, "one of many", 2)
		}
		r.check()
	}, "bounded")
}

// Patience ends also when nothing else happens.
func TestPatienceWithNothingElse(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		all := r.crowd(20, opts)
		for _, a := range all {
			a.suspend()
		}
		for _, a := range all {
			r.deliver(a.pid, 1000, &note{1})
		}
		r.Advance(defaultPatience - time.Second)
		if full, _ := r.isFull(); !full {
			r.t.Error("the inbox is not full")
		}
		r.Advance(2 * time.Second)
		if full, _ := r.isFull(); full {
			r.t.Error("the inbox is still full")
		}
	}, "bounded")
}

// If they do not continue, they no longer count when Patience is over.
func TestPatienceWithMany(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		all := r.crowd(20, opts)
		b := r.spawnTarget("b", opts...)
		for _, a := range all {
			a.suspend()
		}
		p := r.connect("b")
		for _, a := range all {
			r.deliver(a.pid, 1000, &note{1})
		}
		p.send(0, 0, 20)
		r.Advance(defaultPatience + time.Second)
		b.wantNotes(r, "when patience is over", 20)
		r.check()
		for _, a := range all {
			a.resume()
		}
		r.Advance(time.Minute)
		r.check()
		for _, a := range all {
			a.wantNotes(r, "which was given to them", 2)
		}
		if len(r.refusals()) != 0 {
			r.t.Errorf("refused: %v", r.refusals())
		}
	}, "bounded")
}

// An inbox that is full stays so until a quarter was consumed.
func TestAQuarterIsFreeAgain(t *testing.T) {
	inRig(t, small, func(r *rig) {
		gate := make(chan struct{})
		r.add(&process{name: "p", do: func(any) { <-gate }})
		link := r.connect("p")
		link.send(0, 0, 30)
		consume := func(n int) {
			for range n {
				gate <- struct{}{}
			}
			r.Wait()
		}
		consume(3)
		if full, retained := r.isFull(); !full || retained != credits {
			r.t.Errorf("after 3 of 16: full: %v, retained: %d", full, retained)
		}
		// From here on nothing is delivered.
		r.do(func(*Inbox) { r.received = func(*rdma.Received) {} })
		consume(6)
		r.Advance(2 * time.Second)
		if full, _ := r.isFull(); !full {
			r.t.Error("after 9, 14 of 16 are not consumed: it is full no more")
		}
		consume(8)
		if full, retained := r.isFull(); full || retained != 0 {
			r.t.Errorf("after 17: full: %v, retained: %d", full, retained)
		}
		close(gate)
	})
}

// An RDMA message of many parts is retained once.
func TestPartsOfOneMessage(t *testing.T) {
	inRig(t, small, func(r *rig) {
		a := r.spawnTarget("a", r.Runtime().OffLoop())
		a.suspend()
		p := r.connect("a")
		r.received = func(m *rdma.Received) {
			p.came.Add(1)
			for range 10 {
				r.in.Deliver(a.pid, &note{}, 1000, m)
			}
		}
		p.send(0, 0, 20)
		if _, retained := r.isFull(); retained != credits || p.came.Load() != 1+credits {
			r.t.Errorf("%d retained, %d came", retained, p.came.Load())
		}
		a.resume()
		r.Advance(soon)
		if _, retained := r.isFull(); len(a.notes()) != 200 || retained != 0 {
			r.t.Errorf("%d received, %d retained in the end", len(a.notes()), retained)
		}
	})
}

// Actors that have lost their Touch in a full inbox get another one.
func TestLostTouchesInAFullInbox(t *testing.T) {
	inTouched(t, small, func(r *rig, opts []actor.PropsOption) {
		var all []*target
		for i := range 20 {
			failed := false
			all = append(all, r.spawnReceiver(fmt.Sprint("a", i), func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Touch); ok && !failed {
					failed = true
					panic("as the test wants")
				}
			}, opts...))
			r.ExpectPanic("as the test wants")
		}
		for _, a := range all {
			r.deliver(a.pid, 1000, &note{0})
		}
		r.Advance(soon)
		if full, _ := r.isFull(); full || len(r.refusals()) != 0 {
			r.t.Errorf("full: %v, %d refused", full, len(r.refusals()))
		}
	})
}

// Whose messages wait for long is logged, once.
func TestWhoseMessagesWaitIsLogged(t *testing.T) {
	var lines lockedBuffer
	inLoggedRig(t, slog.New(slog.NewTextHandler(&lines, nil)), narrow, func(r *rig) {
		a := r.spawnTarget("a")
		for range 2 {
			a.suspend()
			r.deliver(a.pid, 1000, notes(20)...)
			r.Advance(time.Hour)
			a.resume()
			r.Advance(time.Minute)
		}
	})
	if got := lines.String(); strings.Count(got, "consumes nothing") != 2 || !strings.Contains(got, "target=a") {
		t.Errorf("logged:\n%s", got)
	}
}

// lockedBuffer is a buffer for a logger.
type lockedBuffer struct {
	mu  sync.Mutex
	all strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
