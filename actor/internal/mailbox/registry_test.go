package mailbox

import (
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
)

// A PID shows where its actor runs for as long as it lives, and a name's new owner is not taken
// for the old one.
func TestRegistry(t *testing.T) {
	r := newRig(t, 2)
	root := r.sys.Root
	idle := func(actor.Context) {}
	for _, c := range []struct {
		name    string
		opts    []actor.PropsOption
		onLoop  *Loop
		offLoop bool
	}{
		{"loop 0", []actor.PropsOption{in(r.loops[0])}, r.loops[0], false},
		{"loop 1", []actor.PropsOption{in(r.loops[1])}, r.loops[1], false},
		{"off loop", []actor.PropsOption{r.OffLoop()}, nil, true},
		{"Proto.Actor's own", nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the second time as the successor under the same name
				pid, err := root.SpawnNamed(actor.PropsFromFunc(idle, c.opts...), "name")
				if err != nil {
					t.Fatal(err)
				}
				var at *Loop
				m := r.boxOf(pid)
				if m != nil {
					at = m.Loop()
				}
				if (m != nil) != (c.onLoop != nil) {
					t.Errorf("boxOf is %p: only an actor on a loop is delivered to", m)
				}
				if off := m == nil && r.registry.Find(pid) != nil; at != c.onLoop || off != c.offLoop {
					t.Errorf("on loop %p, off loop %v; want %p, %v", at, off, c.onLoop, c.offLoop)
				}
				if r.registry.Find(actor.NewPID("elsewhere:1", pid.Id)) != nil {
					t.Error("a remote PID of the same id has a box here")
				}
				stop(t, r.sys, pid)
				unboxed(r, pid)
			}
		})
	}
	if r.registry.Find(nil) != nil {
		t.Error("a nil PID has a box")
	}
}

// An old mailbox that closes late leaves the successor of its name alone.
func TestRegistryKeepTheSuccessor(t *testing.T) {
	b := RegistryOf(testSystem(t))
	old, successor := &Mailbox{}, &Mailbox{}
	b.add("name", old)
	b.add("name", successor)
	b.remove("name", old)
	if b.get("name") != successor {
		t.Error("the successor lost its box")
	}
}

func TestNonhost(t *testing.T) {
	if got := testSystem(t).Address(); got != nonhost {
		t.Errorf("a fresh ActorSystem is at %q, we take it to be %q", got, nonhost)
	}
}

// An Option that a WithMailbox has undone is found out; one behind a WithMailbox is not undone.
func TestOptionUndone(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		nothing := func(actor.Context) {}
		for name, where := range map[string]actor.PropsOption{"on": r.OnLoop(), "off": r.OffLoop()} {
			undone := r.sys.Root.Spawn(actor.PropsFromFunc(nothing, where, actor.WithMailbox(actor.Unbounded())))
			fine := r.sys.Root.Spawn(actor.PropsFromFunc(nothing, actor.WithMailbox(actor.Unbounded()), where))
			if !r.registry.Undone(undone) || r.registry.Undone(fine) {
				t.Errorf("%s: undone is %v and %v, want true and false", name, r.registry.Undone(undone), r.registry.Undone(fine))
			}
			stop(t, r.sys, undone, fine)
		}
	})
}

// Stopped actors leave nothing behind that affects a later one of their name.
func TestOptionUndoneIsForgotten(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		undone := actor.PropsFromFunc(func(actor.Context) {}, r.OnLoop(), actor.WithMailbox(actor.Unbounded()))
		for range 100 {
			pid, err := r.sys.Root.SpawnNamed(undone, "same")
			if err != nil {
				t.Fatal(err)
			}
			if !r.registry.Undone(pid) {
				t.Error("an actor with another mailbox is not found out")
			}
			r.sys.Root.Stop(pid)
			r.sys.Root.Stop(r.sys.Root.Spawn(undone))
			synctest.Wait()
		}
		if n := len(r.registry.due); n > 32 {
			t.Errorf("%d of 200 actors that are gone are remembered", n)
		}
		pid, err := r.sys.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "same")
		if err != nil || r.registry.Undone(pid) {
			t.Errorf("%v; the next of that name is taken for the one before", err)
		}
		stop(t, r.sys, pid)
	})
}
