package inbox

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// rig is a link's actor with its inbox, in virtual time.
type rig struct {
	*actortest.World
	t       *testing.T
	link    *actor.PID
	in      *Inbox
	refused []refusal
	// received handles the RDMA messages of the link's actor
	received func(m *rdma.Received)
	mu       sync.Mutex
	dead     []*actor.DeadLetterEvent
}

// deadLetters returns what became dead letters.
func (r *rig) deadLetters() []*actor.DeadLetterEvent {
	r.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.dead)
}

// refusal is one report to Refuse.
type refusal struct {
	target string
	msg    any
	sender *actor.PID
	why    error
}

// refusals returns all reports so far.
func (r *rig) refusals() []refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.refused)
}

// isFull reports whether the inbox is full, and how many RDMA messages it retains.
func (r *rig) isFull() (full bool, retained int) {
	r.do(func(in *Inbox) { full, retained = in.full, len(in.retained) })
	return full, retained
}

// inRig runs a test with an inbox.
func inRig(t *testing.T, cfg Config, test func(r *rig)) {
	t.Helper()
	inLoggedRig(t, nil, cfg, test)
}

// inLoggedRig runs it with a logger.
func inLoggedRig(t *testing.T, logger *slog.Logger, cfg Config, test func(r *rig)) {
	t.Helper()
	runtime := rdma.Config{Logger: logger}
	actortest.Run(t, actortest.Config{Runtime: runtime}, func(w *actortest.World) {
		r := &rig{World: w, t: w.T()}
		r.spawn(cfg)
		test(r)
		r.check()
		r.do(func(in *Inbox) { in.Close(); in.Close() })
	})
}

// spawn starts the link's actor. The functions that it is sent are called on its loop.
func (r *rig) spawn(cfg Config) {
	cfg.System, cfg.Runtime = r.System(), r.Runtime()
	cfg.Refuse = func(target *actor.PID, msg any, _ int, sender *actor.PID, why error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused = append(r.refused, refusal{target.Id, msg, sender, why})
	}
	r.System().EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.dead = append(r.dead, d)
		}
	})
	r.link = r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			r.in = New(ctx, cfg)
		case func(*Inbox):
			m(r.in)
		case func(actor.Context, *Inbox):
			m(ctx, r.in)
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			r.received(m)
		default:
			r.in.Receive(ctx)
		}
	}, r.Runtime().OnLoop()))
	r.Wait()
}

// do calls fn on the link's loop, and waits until everything that follows has happened, also to
// actors that may be in the middle of their spawn.
func (r *rig) do(fn func(in *Inbox)) {
	r.System().Root.Send(r.link, fn)
	r.Advance(spawnTime)
}

// deliver makes the inbox deliver messages of n bytes each.
func (r *rig) deliver(to *actor.PID, n int, msgs ...any) {
	r.do(func(in *Inbox) {
		for _, msg := range msgs {
			in.Deliver(to, msg, n, nil)
		}
	})
}

// check compares the counts of the inbox with the contents of its lines.
func (r *rig) check() {
	r.t.Helper()
	r.do(func(in *Inbox) {
		if in.closed {
			return
		}
		var debt int64
		for _, l := range in.order {
			l.refresh()
			debt += l.pendingBytes()
			if l.pendingBytes() < 0 || l.bytes < 0 || l.route != nil && l.route.inFlight() < 0 {
				r.t.Errorf("%q owes %d bytes, %d wait", l.name, l.pendingBytes(), l.bytes)
			}
		}
		if debt != in.pending {
			r.t.Errorf("%d bytes are pending, and the lines have %d", in.pending, debt)
		}
	})
}

// note is a message of the tests.
type note struct{ n int }

// notes returns n of them.
func notes(n int) (all []any) {
	for i := range n {
		all = append(all, &note{i})
	}
	return all
}

// target is an actor that collects notes.
type target struct {
	pid     *actor.PID
	process actor.Process
	drops   bool // whether it drops waiting messages when it stops
	mu      sync.Mutex
	got     []int
	touches int
}

// notes returns the notes that the target has received.
func (a *target) notes() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got)
}

// spawnTarget starts one.
func (r *rig) spawnTarget(name string, opts ...actor.PropsOption) *target {
	r.t.Helper()
	return r.spawnReceiver(name, func(actor.Context) {}, opts...)
}

// spawnReceiver calls spawnTarget for an actor with an additional receive function.
func (r *rig) spawnReceiver(name string, receive actor.ReceiveFunc, opts ...actor.PropsOption) *target {
	r.t.Helper()
	a := &target{}
	pid, err := r.System().Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		defer receive(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		switch m := ctx.Message().(type) {
		case *note:
			a.got = append(a.got, m.n)
		case *actor.Touch:
			a.touches++
		}
	}, opts...), name)
	if err != nil {
		r.t.Fatal(err)
	}
	a.pid = actor.NewPID(pid.Address, pid.Id)
	a.process, _ = r.System().ProcessRegistry.GetLocal(name)
	r.Wait()
	return a
}

// suspend makes the target consume nothing until resume, as after a failure.
func (a *target) suspend() { a.process.SendSystemMessage(a.pid, &actor.SuspendMailbox{}) }

func (a *target) resume() { a.process.SendSystemMessage(a.pid, &actor.ResumeMailbox{}) }

// wantNotes checks that the target has got the first n notes in order.
func (a *target) wantNotes(r *rig, why string, n int) {
	r.t.Helper()
	r.Wait()
	got := a.notes()
	if len(got) != n {
		r.t.Errorf("%s: got %d notes, want %d", why, len(got), n)
	}
	for i, is := range got {
		if is != i {
			r.t.Errorf("%s: the note at %d is %d", why, i, is)
			break
		}
	}
}

// homes are the kinds of actors that messages go to.
var homes = map[string]func(rt *rdma.Runtime) []actor.PropsOption{
	"on the loop":  func(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OnLoop()} },
	"off the loop": func(rt *rdma.Runtime) []actor.PropsOption { return []actor.PropsOption{rt.OffLoop()} },
	"default":      func(*rdma.Runtime) []actor.PropsOption { return nil },
	"lock-free": func(*rdma.Runtime) []actor.PropsOption {
		return []actor.PropsOption{actor.WithMailbox(actor.UnboundedLockfree())}
	},
	"with mailbox middleware": func(*rdma.Runtime) []actor.PropsOption {
		return []actor.PropsOption{actor.WithMailbox(actor.Unbounded(&stats{}))}
	},
	"with a dispatcher": func(*rdma.Runtime) []actor.PropsOption {
		return []actor.PropsOption{actor.WithDispatcher(actor.NewSynchronizedDispatcher(300))}
	},
	"bounded": func(*rdma.Runtime) []actor.PropsOption {
		return []actor.PropsOption{actor.WithMailbox(actor.Bounded(1 << 14))}
	},
	"with priorities": func(*rdma.Runtime) []actor.PropsOption {
		return []actor.PropsOption{actor.WithMailbox(actor.UnboundedPriority())}
	},
}

// stats is a mailbox middleware that does nothing.
type stats struct{}

func (*stats) MailboxStarted()     {}
func (*stats) MessagePosted(any)   {}
func (*stats) MessageReceived(any) {}
func (*stats) MailboxEmpty()       {}

// inHomes runs a test for each kind.
func inHomes(t *testing.T, cfg Config, test func(r *rig, opts []actor.PropsOption), without ...string) {
	t.Helper()
	for name, home := range homes {
		if slices.Contains(without, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			inRig(t, cfg, func(r *rig) { test(r, home(r.Runtime())) })
		})
	}
}

// soon is longer than anything takes here without a deliberate wait.
const soon = 3 * time.Second
