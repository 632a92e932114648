package inbox

import (
	"reflect"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// way is how a process is sent to.
type way struct{ Carried, Touches, Off bool }

// ways is what every kind of actor has after its first message.
var ways = map[string]way{
	"on the loop":             {Carried: true},
	"off the loop":            {Carried: true},
	"default":                 {Touches: true},
	"lock-free":               {Touches: true},
	"with mailbox middleware": {Touches: true, Off: true},
	"with a dispatcher":       {Touches: true, Off: true},
	"with priorities":         {Touches: true, Off: true},
	"bounded":                 {Off: true},
}

// wayTo returns the way to a name.
func (r *rig) wayTo(name string) (is way) {
	r.t.Helper()
	r.do(func(in *Inbox) {
		l := in.lines[name]
		if l == nil || l.route == nil {
			r.t.Fatalf("there is no way to %q", name)
		}
		is = way{l.route.carried, l.route.touches, l.route.off}
	})
	return is
}

// Every kind of mailbox is recognized. If this fails with a new version of Proto.Actor, its types
// have changed: adapt kinds.go after reading what they do when a message is posted. Until then
// everything is sent to off the loop, which is slow.
func TestKindsOfMailboxesAreRecognized(t *testing.T) {
	for name, want := range ways {
		t.Run(name, func(t *testing.T) {
			inRig(t, Config{}, func(r *rig) {
				a := r.spawnTarget("a", homes[name](r.Runtime())...)
				r.deliver(a.pid, 10, &note{0})
				r.deliver(a.pid, 10, &note{1})
				if is := r.wayTo("a"); is != want {
					r.t.Errorf("sent to by %+v, want %+v", is, want)
				}
				a.wantNotes(r, "by any way", 2)
			})
		})
	}
}

// A copy of Proto.Actor's types with other names, and another order of the fields. Only reflection
// reads them.
//
//nolint:unused // see above
type (
	renamedProcess struct {
		gone    int32
		postbox actor.Mailbox
	}
	renamedBox struct {
		actor.Mailbox  // nil
		runs           actor.Dispatcher
		before         []actor.MailboxMiddleware
		pending, state int32
		waiting        interface{ Pop() any }
	}
	renamedQueue struct{}
)

func (*renamedQueue) Pop() any { return nil }

// The fields of Proto.Actor's types are found whatever they are called.
func TestRenamedFieldsAreFound(t *testing.T) {
	plain := []actor.Mailbox{&renamedBox{waiting: &renamedQueue{}}}
	k := kindsOf(reflect.TypeFor[renamedProcess](), plain, plain)
	if k.missing != "" || k.mailbox != 1 || k.dispatcher != 1 || k.middlewares != 2 || k.queue != 5 {
		t.Errorf("%+v", k)
	}
	if protoActor.missing != "" || Missing() != "" {
		t.Errorf("this version of Proto.Actor: %s", protoActor.missing)
	}
}

// Whichever part is not found is named.
func TestMissingFieldsAreNamed(t *testing.T) {
	good := []actor.Mailbox{&renamedBox{waiting: &renamedQueue{}}}
	for name, k := range map[string]*kinds{
		"no mailbox":      kindsOf(reflect.TypeFor[struct{ n int }](), good, good),
		"two mailboxes":   kindsOf(reflect.TypeFor[struct{ a, b actor.Mailbox }](), good, good),
		"no queue":        kindsOf(reflect.TypeFor[renamedProcess](), []actor.Mailbox{&renamedBox{}}, good),
		"no fields":       kindsOf(reflect.TypeFor[renamedProcess](), []actor.Mailbox{&own{}}, good),
		"no struct":       kindsOf(reflect.TypeFor[renamedProcess](), []actor.Mailbox{own{}}, good),
		"another mailbox": kindsOf(reflect.TypeFor[renamedProcess](), good, []actor.Mailbox{&own{}}),
	} {
		if k.missing == "" {
			t.Errorf("%s: nothing is missing", name)
		}
	}
}

// With a version of Proto.Actor whose mailboxes are not recognized, waiting messages are bounded as
// before: every actor is sent to off the loop, and touched.
func TestUnrecognizedMailboxesAreBounded(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		r.do(func(in *Inbox) { in.kinds = &kinds{missing: "everything"} })
		a := r.spawnTarget("a", opts...)
		a.suspend()
		r.deliver(a.pid, 1000, notes(100)...)
		r.do(func(in *Inbox) {
			l := in.lines["a"]
			if n := l.route.inFlight(); n > in.window {
				r.t.Errorf("the mailbox has %d bytes", n)
			}
			if !l.route.carried && (!l.route.touches || !l.route.off) {
				r.t.Errorf("sent to by %+v", l.route)
			}
		})
		a.resume()
		r.Advance(time.Minute)
		a.wantNotes(r, "of a kind that is not recognized", 100)
	})
}

// own is a mailbox that only its user knows.
type own struct{ actor.Mailbox }

// Unrecognized processes are sent to off the loop: a custom mailbox, a router, processes without an
// actor.
func TestUnknownKindsGoOffTheLoop(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		mine := actor.WithMailbox(func() actor.Mailbox { return own{actor.Unbounded()()} })
		a := r.spawnTarget("a", mine)
		b := r.spawnTarget("b")
		group := actor.NewPID("", "router")
		r.System().ProcessRegistry.Add(function{func() { r.System().Root.Send(b.pid, &note{0}) }}, group.Id)
		published := make(chan any, 1)
		s := r.System().EventStream.Subscribe(func(msg any) {
			if n, ok := msg.(*note); ok {
				published <- n
			}
		})
		defer r.System().EventStream.Unsubscribe(s)
		stream := actor.NewPID("", "eventstream")
		if _, ok := r.System().ProcessRegistry.GetLocal(stream.Id); !ok {
			r.System().ProcessRegistry.Add(actor.NewEventStreamProcess(r.System()), stream.Id)
		}
		for _, pid := range []*actor.PID{a.pid, group, stream} {
			r.deliver(pid, 10, &note{0})
			if is := r.wayTo(pid.Id); is != (way{Off: true}) {
				r.t.Errorf("%s is sent to by %+v", pid.Id, is)
			}
		}
		a.wantNotes(r, "a mailbox of its own", 1)
		b.wantNotes(r, "behind a router", 1)
		if len(published) != 1 {
			r.t.Errorf("%d published", len(published))
		}
		r.System().ProcessRegistry.Remove(group)
	})
}

// A future's process is recognized by its type, which Proto.Actor does not export.
func TestFuturesAreRecognized(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		f := actor.NewFuture(r.System(), time.Second)
		p, _ := r.System().ProcessRegistry.GetLocal(f.PID().Id)
		r.do(func(in *Inbox) {
			for range 2 {
				if !in.isFuture(p) {
					r.t.Error("a future is not recognized: has its type another name?")
				}
			}
			for _, p := range []actor.Process{r.System().DeadLetter, in.answers, in.home} {
				if in.isFuture(p) {
					r.t.Errorf("%T is taken for a future's", p)
				}
			}
			in.Deliver(f.PID(), &note{}, 1, nil)
			if len(in.lines) != 0 {
				r.t.Error("a future has a line")
			}
		})
		if _, err := f.Result(); err != nil {
			r.t.Error(err)
		}
	})
}

// A process whose type cannot be compared is a process like any other.
func TestAProcessThatCannotBeCompared(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		got := 0
		r.System().ProcessRegistry.Add(function{func() { got++ }}, "function")
		for range 3 {
			r.deliver(actor.NewPID("", "function"), 10, &note{})
		}
		if got != 3 {
			r.t.Errorf("it got %d messages, want 3", got)
		}
		r.System().ProcessRegistry.Remove(actor.NewPID("", "function"))
	})
}

// function is a process that is a function.
type function struct{ do func() }

func (f function) SendUserMessage(*actor.PID, any)   { f.do() }
func (f function) SendSystemMessage(*actor.PID, any) { f.do() }
func (f function) Stop(*actor.PID)                   {}
