package states

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
)

// cells calls f for the whole product flavor x state x input.
func cells(f func(f Flavor, s State, in Input)) {
	for fl := range Flavor(NumFlavors) {
		for s := range State(NumStates) {
			for i := range Input(NumInputs) {
				f(fl, s, i)
			}
		}
	}
}

// TestProduct checks every cell for the contract of Step and Why.
func TestProduct(t *testing.T) {
	n := 0
	cells(func(f Flavor, s State, in Input) {
		n++
		next, v := Step(f, s, in)
		why := Why(f, s, in)
		bad := func(format string, args ...any) {
			t.Helper()
			t.Errorf("%v, %v, %v -> %v %v: %s", f, s, in, next, v, fmt.Sprintf(format, args...))
		}
		op, command := in.commandOf()
		asked := int(in) < firstFailed || int(in) == unknownCommand
		if int(next) >= NumStates {
			bad("next is out of range")
			return
		}
		if Exists(f, s) && !Exists(f, next) {
			bad("%v identifiers are never in %v", f, next)
		}
		if v != Allow && next != s {
			bad("changes the state")
		}
		switch v {
		case Allow:
			if why.Text != "" || why.Errno != 0 {
				bad("allowed, with the reason %+v", why)
			}
		case Ignore:
			if asked || command {
				bad("only events are ignored: every command has an answer")
			}
			if !strings.Contains(why.Text, in.String()) || why.Errno != 0 {
				bad("reason %+v", why)
			}
		case Refuse, Guard:
			if !asked {
				bad("only commands are refused")
			}
			if why.Errno == 0 || v == Guard && why.Errno != EINVAL {
				bad("errno %v", why.Errno)
			}
			if command && !strings.HasSuffix(why.Text, " ("+op.C()+"(3))") || len(why.Text) < 15 {
				bad("reason %q", why.Text)
			}
		default:
			bad("verdict out of range")
		}
		if (v == Allow) != slices.Contains(why.Legal, op) && int(in) < firstFailed {
			bad("legal: %v", why.Legal)
		}
		if !strings.ContainsAny(v.String(), "aeiou") || in.String() == "" {
			bad("no name")
		}
	})
	if want := 8 * 20 * (28 + 28 + 20 + 2); n != want {
		t.Errorf("%d cells, want %d", n, want)
	}
}

// TestRulesDisjoint: no two rules decide one cell, so that their order has no meaning, and each
// rule decides at least one.
func TestRulesDisjoint(t *testing.T) {
	for f := range Flavor(NumFlavors) {
		for s := range State(NumStates) {
			if f&Device != 0 && !hasDevice(f, s) || f&Device == 0 && hasDevice(f, s) {
				continue // no such cell: the device bit is implied by the state
			}
			taken := map[Input]rule{}
			for _, group := range rules {
				for _, r := range group {
					if !r.flavors.has(f) || !r.from.has(s) {
						continue
					}
					if other, ok := taken[r.in]; ok {
						t.Errorf("%v, %v, %v: two rules, %+v and %+v", f, s, r.in, other, r)
					}
					taken[r.in] = r
				}
			}
		}
	}
	used := map[*rule]bool{}
	cells(func(f Flavor, s State, in Input) {
		if Exists(f, s) {
			used[reasons[f][s][in]] = true
		}
	})
	for _, group := range rules {
		for i := range group {
			if r := &group[i]; !used[r] {
				t.Errorf("rule %v from %b decides nothing", r.in, r.from)
			}
		}
	}
}

// TestReachable derives from the rules alone which states an identifier can come to, and
// compares Exists with it.
func TestReachable(t *testing.T) {
	for f := range Flavor(NumFlavors) {
		seen := in(Idle)
		for grown := true; grown; {
			before := seen
			if seen.has(Listening) {
				seen |= in(ConnectRequested) // a listener's child
			}
			for s := range State(NumStates) {
				if !seen.has(s) {
					continue
				}
				for i := range Input(NumInputs) {
					// A device may be attached by a specific address or on the way, whatever the
					// flavor is now.
					for _, f := range []Flavor{f, f | Device} {
						next, _ := Step(f, s, i)
						seen |= in(next)
					}
				}
			}
			grown = seen != before
		}
		if seen != existing[f] {
			t.Errorf("%v: reached %0*b, existing %0*b", f, NumStates, seen, NumStates, existing[f])
		}
	}
}

// TestMissingStates: a state that a flavor never enters is judged like Failed, and never moves to
// another but the dead ones.
func TestMissingStates(t *testing.T) {
	missing := 0
	cells(func(f Flavor, s State, in Input) {
		if Exists(f, s) {
			return
		}
		missing++
		next, v := Step(f, s, in)
		fnext, fv := Step(f, Failed, in)
		if v != fv || next != fnext && (next != s || fnext != Failed) {
			t.Errorf("%v, %v, %v: %v %v, but %v %v in failed", f, s, in, next, v, fnext, fv)
		}
	})
	if missing == 0 {
		t.Error("every state exists in every flavor")
	}
}

// TestDead: rdma_get_cm_event(3) requires that an identifier is destroyed after its device was
// removed; a destroyed one accepts nothing.
func TestDead(t *testing.T) {
	cells(func(f Flavor, s State, i Input) {
		next, v := Step(f, s, i)
		errno := Why(f, s, i).Errno
		switch {
		case s == Destroying:
			if next != Destroying || int(i) < firstFailed && errno != ENOENT || int(i) >= firstOccurred && v == Allow {
				t.Errorf("%v, destroying, %v: %v %v %v", f, i, next, v, errno)
			}
		case i == Requested(OpDestroyID):
			if next != Destroying || v != Allow {
				t.Errorf("%v, %v: DestroyID is %v", f, s, v)
			}
		case s == Removed:
			if next != Removed || int(i) < firstFailed && errno != ENXIO || int(i) >= firstOccurred && v == Allow {
				t.Errorf("%v, removed, %v: %v %v %v", f, i, next, v, errno)
			}
		}
	})
}

// TestOutOfRange: values no caller should have are answered, not a panic.
func TestOutOfRange(t *testing.T) {
	for f := range 256 {
		for s := range 256 {
			for _, i := range []int{0, firstFailed, firstOccurred, unknownEvent, unknownCommand, NumInputs, 255} {
				next, v := Step(Flavor(f), State(s), Input(i))
				why := Why(Flavor(f), State(s), Input(i))
				if (s >= NumStates || i >= NumInputs) && (next != State(s) || v != Refuse || why.Errno != EINVAL || why.Text == "") {
					t.Fatalf("Step(%d, %d, %d) = %v, %v; %+v", f, s, i, next, v, why)
				}
			}
		}
	}
	if got := Requested(Op(numOps)); int(got) != unknownCommand {
		t.Errorf("Requested(no such op) = %v", got)
	}
	for _, k := range []Kind{Kind(NumKernelKinds), KindBound, KindClosed, 255} {
		if _, v := Step(0, Connected, Occurred(k)); v != Ignore {
			t.Errorf("event %v of a later kernel, or of ours: %v", k, v)
		}
	}
	if _, v := Step(0, Connected, CommandFailed(255)); v != Ignore {
		t.Errorf("failure of no command: %v", v)
	}
	for _, s := range []fmt.Stringer{State(255), Op(255), Kind(255), Verdict(255), Input(255), Errno(1), Requested(255), Occurred(255)} {
		if s.String() == "" {
			t.Errorf("%#v has no name", s)
		}
	}
	if State(255).Kernel()+State(255).Meaning()+Op(255).C()+Kind(255).C() != "" {
		t.Error("a C name for what does not exist")
	}
}

// TestMessage fixes a reason word for word: errors are read by people.
func TestMessage(t *testing.T) {
	for _, c := range []struct {
		f     Flavor
		s     State
		op    Op
		text  string
		errno Errno
	}{
		{0, Idle, OpListen, "not bound: send BindAddr first; the kernel would listen on 0.0.0.0 and a random port (rdma_listen(3))", EINVAL},
		{0, Bound, OpConnect, "bound, but nothing is resolved: Connect follows RouteResolved, once per identifier (rdma_connect(3))", EINVAL},
		{0, Connected, OpNotifyCommEst, "the connection is established already: nothing to do (rdma_notify(3))", EISCONN},
		{0, Removed, OpConnect, "its device is gone and only DestroyID helps (rdma_connect(3))", ENXIO},
		{IWARP, Bound, OpLeaveMulticast, "not a member of any group: only a datagram identifier on InfiniBand or RoCE can be (rdma_leave_multicast(3))", EADDRNOTAVAIL},
		{UD, Idle, OpSetAckTimeout, "a datagram identifier has no acknowledgements to wait for (rdma_set_option(3))", EINVAL},
	} {
		why := Why(c.f, c.s, Requested(c.op))
		if why.Text != c.text || why.Errno != c.errno {
			t.Errorf("%v in %v: %q %v, want %q %v", c.op, c.s, why.Text, why.Errno, c.text, c.errno)
		}
	}
	if got := Legal(0, Destroying); len(got) != 0 {
		t.Errorf("legal in destroying: %v", got)
	}
	if got := Legal(0, Removed); !slices.Equal(got, []Op{OpDestroyID}) {
		t.Errorf("legal in removed: %v", got)
	}
}

// TestGuards: each is complete, in one line, and the text of no other.
func TestGuards(t *testing.T) {
	guarded := 0
	cells(func(f Flavor, s State, in Input) {
		if _, v := Step(f, s, in); v == Guard && Exists(f, s) {
			guarded++
			n := 0
			for _, g := range guards() {
				if op, _ := in.commandOf(); g.Op == op && g.applies(f, s) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%v, %v, %v is guarded by %d entries of guards", f, s, in, n)
			}
		}
	})
	if guarded == 0 {
		t.Error("nothing is guarded")
	}
	for _, g := range guards() {
		if len(g.States) == 0 || g.Text == "" || strings.Contains(g.Text, "\n") || !strings.Contains(g.Text, "the kernel would") {
			t.Errorf("guard %+v", g)
		}
	}
	if guards()[0].applies(0, State(NumStates)) {
		t.Error("a guard applies to a state that does not exist")
	}
}

// TestNames: no two states, commands or events share a name; flavors print their bits.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	unique := func(kind, name string) {
		if name == "" || seen[kind+name] {
			t.Errorf("%s %q is empty or used twice", kind, name)
		}
		seen[kind+name] = true
	}
	for s := range State(NumStates) {
		unique("state", s.String())
		unique("meaning", s.Meaning())
		if s.Kernel() == "" || s.Kernel() != strings.ToUpper(s.Kernel()) {
			t.Errorf("%v: kernel name %q", s, s.Kernel())
		}
	}
	for i := range Input(NumInputs) {
		unique("input", i.String())
	}
	for k := range KindAtomicDone + 1 {
		unique("kind", k.String())
	}
	if KindBound.String() != "Bound" || KindClosed.String() != "Closed" || KindBound != Kind(NumKernelKinds) {
		t.Errorf("our events: %v .. %v", KindBound, KindClosed)
	}
	for f := range Flavor(NumFlavors) {
		unique("flavor", f.String())
		if got := strings.Count(f.String(), "iWARP") + strings.Count(f.String(), "UD") + strings.Count(f.String(), "device"); got != bits.OnesCount8(uint8(f)) {
			t.Errorf("flavor %b is named %q", f, f)
		}
	}
	for _, e := range []Errno{0, ENOENT, ENXIO, EINVAL, ENOSYS, EOPNOTSUPP, EADDRNOTAVAIL, EISCONN} {
		unique("errno", e.String())
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	var sink State
	if n := testing.AllocsPerRun(100, func() {
		cells(func(f Flavor, s State, in Input) { sink, _ = Step(f, s, in) })
	}); n != 0 {
		t.Errorf("%v allocations over the product, last state %v", n, sink)
	}
}

func BenchmarkStep(b *testing.B) {
	b.ReportAllocs()
	walk := [...]Input{
		Requested(OpResolveAddr), Occurred(KindAddrResolved), Requested(OpResolveRoute), Occurred(KindRouteResolved),
		Requested(OpConnect), Occurred(KindEstablished), Requested(OpDisconnect), Occurred(KindDisconnected),
	}
	s, i := Idle, 0
	for b.Loop() {
		s, _ = Step(0, s, walk[i])
		if i++; i == len(walk) {
			s, i = Idle, 0
		}
	}
	if s == Failed {
		b.Fatal("the walk failed")
	}
}
