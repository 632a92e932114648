package inbox

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// process is a process without an actor: the test decides how it handles a message.
type process struct {
	name string
	do   func(msg any)

	mu      sync.Mutex
	got     []int
	systems []any
}

func (p *process) SendUserMessage(_ *actor.PID, msg any) {
	if p.do != nil {
		p.do(msg)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, msg.(*note).n)
}

func (p *process) SendSystemMessage(_ *actor.PID, msg any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.systems = append(p.systems, msg)
}

func (p *process) Stop(*actor.PID) {}

func (p *process) pid() *actor.PID { return actor.NewPID("", p.name) }

func (p *process) notes() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// add registers a process until the test has ended.
func (r *rig) add(p *process) *process {
	r.System().ProcessRegistry.Add(p, p.name)
	r.t.Cleanup(func() { r.System().ProcessRegistry.Remove(p.pid()) })
	return p
}

// A process that blocks its senders blocks only its own messages, and system messages pass these.
func TestAProcessThatBlocks(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		gate := make(chan struct{})
		p := r.add(&process{name: "p", do: func(any) { <-gate }})
		q := r.add(&process{name: "q"})
		a := r.spawnTarget("a")
		for _, m := range notes(20) {
			r.do(func(in *Inbox) {
				in.Deliver(p.pid(), m, 1000, nil)
				in.Deliver(q.pid(), m, 1000, nil)
				in.Deliver(a.pid, m, 1000, nil)
			})
		}
		watch := &actor.Watch{Watcher: a.pid}
		r.do(func(in *Inbox) { in.DeliverSystem(p.pid(), watch, 10) })
		a.wantNotes(r, "an actor", 20)
		if n := len(q.notes()); n != 20 {
			r.t.Errorf("another process got %d messages, want 20", n)
		}
		if n := len(p.notes()); n != 0 || len(p.systems) != 1 || p.systems[0] != any(watch) {
			r.t.Errorf("the process got %d messages, and the system messages %v", n, p.systems)
		}
		r.do(func(in *Inbox) {
			if l := in.lines["p"]; l.waiting.Len() < 16 || l.route.inFlight() > in.window+200 {
				r.t.Errorf("%d wait, %d bytes in flight", l.waiting.Len(), l.route.inFlight())
			}
		})
		close(gate)
		r.Wait()
		if got := p.notes(); len(got) != 20 || !slices.IsSorted(got) {
			r.t.Errorf("then it got %v", got)
		}
	})
}

// When a process blocks for longer than Patience, its waiting messages are refused, including those
// that its goroutine has not started to send. The one message that it is handling is not refused.
func TestPatienceWithAProcess(t *testing.T) {
	inRig(t, small, func(r *rig) {
		gate := make(chan struct{})
		p := r.add(&process{name: "p", do: func(any) { <-gate }})
		b := r.spawnTarget("b")
		link := r.connect("pb")
		link.send(0, 0, 100)
		link.send(1, 0, 20)
		r.Advance(defaultPatience + time.Second)
		b.wantNotes(r, "when patience is over", 20)
		if full, _ := r.isFull(); len(r.refusals()) != 99 || full {
			r.t.Errorf("%d refused, want 99; full: %v", len(r.refusals()), full)
		}
		close(gate)
		r.Wait()
		link.send(0, 100, 3)
		if got := p.notes(); !slices.Equal(got, []int{0, 100, 101, 102}) {
			r.t.Errorf("it got %v", got)
		}
	})
}

// A process that panics or exits has lost that message, which is reported once; it gets the others,
// and no other target notices.
func TestAProcessThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail func()
		is   func(error) bool
	}{
		"panics": {func() { panic("as the test wants") }, func(err error) bool {
			var p *rdma.PanicError
			return errors.As(err, &p) && p.Value == "as the test wants"
		}},
		"exits": {runtime.Goexit, func(err error) bool { return errors.Is(err, errExit) }},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, narrow, func(r *rig) {
				p := r.add(&process{name: "p", do: func(msg any) {
					if n := msg.(*note).n; n%5 == 2 {
						c.fail()
					}
				}})
				r.deliver(p.pid(), 1000, notes(20)...)
				if got, want := p.notes(), []int{0, 1, 3, 4, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19}; !slices.Equal(got, want) {
					r.t.Errorf("it got %v", got)
				}
				for i, f := range r.refusals() {
					if n := f.msg.(*note).n; n != 5*i+2 || f.target != "p" || !c.is(f.why) {
						r.t.Errorf("refused: %+v", f)
					}
				}
				if len(r.refusals()) != 4 {
					r.t.Errorf("%d refused", len(r.refusals()))
				}
			})
		})
	}
}

// batch is a batch that fails when it is read.
type batch struct{}

func (*batch) GetMessages() []any { panic("as the test wants") }

// A message whose own code fails when it is posted costs that message only.
func TestAMessageThatFails(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		r.deliver(a.pid, 1000, &note{0})
		r.deliver(a.pid, 1000, &batch{}, &note{1}, &actor.MessageEnvelope{Message: &batch{}, Sender: a.pid}, &note{2})
		a.wantNotes(r, "beside it", 3)
		r.do(func(in *Inbox) {
			l := in.lines["a"]
			if l.refresh(); !l.route.touches && l.pendingBytes() != 0 {
				r.t.Errorf("%d bytes are not consumed", l.pendingBytes())
			}
		})
		if len(r.refusals()) != 2 || r.refusals()[1].sender != a.pid {
			r.t.Fatalf("refused: %+v", r.refusals())
		}
		for _, f := range r.refusals() {
			var p *rdma.PanicError
			if _, ok := f.msg.(*batch); !ok || !errors.As(f.why, &p) {
				r.t.Errorf("refused: %+v", f)
			}
		}
	})
}

// posted is a mailbox middleware that calls the test's function for each posted message.
type posted struct {
	stats
	do func(msg any)
}

func (p *posted) MessagePosted(msg any) { p.do(actor.UnwrapEnvelopeMessage(msg)) }

// A Touch that fails when it is posted is not refused to anybody: it has no sender.
func TestATouchThatFails(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		failed := false
		mw := &posted{do: func(msg any) {
			if _, ok := msg.(*actor.Touch); ok && !failed {
				failed = true
				panic("as the test wants")
			}
		}}
		a := r.spawnTarget("a", actor.WithMailbox(actor.Unbounded(mw)))
		r.deliver(a.pid, 1000, notes(20)...)
		r.Advance(soon)
		a.wantNotes(r, "with a lost Touch", 20)
		if len(r.refusals()) != 0 || !failed {
			r.t.Errorf("failed: %v, refused: %+v", failed, r.refusals())
		}
	})
}

// A middleware that blocks who posts: what its goroutine has not begun with is refused, also its
// Touches and system messages, and everything goes on when it does.
func TestAMiddlewareThatBlocks(t *testing.T) {
	inRig(t, small, func(r *rig) {
		gate := make(chan struct{})
		mw := &posted{do: func(msg any) {
			switch msg.(type) {
			case *note, *actor.Unwatch:
				<-gate
			}
		}}
		a := r.spawnTarget("a", actor.WithMailbox(actor.Unbounded(mw)))
		b := r.spawnTarget("b")
		r.do(func(in *Inbox) {
			for i := range 20 {
				in.Deliver(a.pid, &note{i}, 1000, nil)
				if i < 5 {
					in.DeliverSystem(a.pid, &actor.Unwatch{Watcher: a.pid}, 10)
				}
			}
		})
		r.Advance(defaultPatience + time.Second)
		r.do(func(in *Inbox) {
			if n := len(in.answers.out); n != 0 || in.full {
				r.t.Errorf("%d Touches are kept; full: %v", n, in.full)
			}
		})
		if n := len(r.refusals()); n != 19 {
			r.t.Errorf("%d refused, want 19 messages", n)
		}
		close(gate)
		r.Advance(soon)
		r.check()
		for i := range 20 {
			// The first are refused, until a Touch was answered.
			r.deliver(a.pid, 1000, &note{i + 1})
			r.deliver(b.pid, 1000, &note{i})
			r.Advance(time.Minute)
			r.check()
		}
		b.wantNotes(r, "another one", 20)
		if got := a.notes(); len(got) < 18 || !slices.IsSorted(got) {
			r.t.Errorf("it got %v", got)
		}
		r.do(func(in *Inbox) {
			if n := len(in.answers.out); n > 2 {
				r.t.Errorf("%d Touches are kept", n)
			}
		})
	})
}

// Blocked system messages beside user messages that get through: a Touch may be answered before
// messages that were sent earlier.
func TestAMiddlewareThatBlocksSystemMessages(t *testing.T) {
	inRig(t, small, func(r *rig) {
		gate := make(chan struct{})
		mw := &posted{do: func(msg any) {
			if _, ok := msg.(*actor.Unwatch); ok {
				<-gate
			}
		}}
		a := r.spawnTarget("a", actor.WithMailbox(actor.Unbounded(mw)))
		a.suspend()
		r.do(func(in *Inbox) {
			for range 5 {
				in.DeliverSystem(a.pid, &actor.Unwatch{Watcher: a.pid}, 10)
			}
			for i := range 20 {
				in.Deliver(a.pid, &note{i}, 1000, nil)
			}
		})
		r.Advance(defaultPatience + time.Second)
		a.resume()
		r.Advance(time.Minute)
		r.check()
		close(gate)
		r.Advance(time.Minute)
		r.check()
	})
}

// A line is kept as long as a goroutine sends something for it.
func TestALineIsIdle(t *testing.T) {
	l := &line{route: &route{}}
	if !l.isIdle() {
		t.Error("a line with nothing on its way is not idle")
	}
	l.route.lanes[1].push(item{})
	if l.isIdle() {
		t.Error("a line whose goroutine has work is idle")
	}
}
