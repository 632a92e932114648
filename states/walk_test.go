package states

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// anyInput draws any input at all.
func anyInput() *rapid.Generator[Input] {
	return rapid.Map(rapid.IntRange(0, NumInputs-1), func(i int) Input { return Input(i) })
}

// likelyInput prefers inputs that move an identifier of flavor f in state s, so that walks get far.
func likelyInput(t *rapid.T, f Flavor, s State) Input {
	if rapid.IntRange(0, 3).Draw(t, "dice") == 0 {
		return anyInput().Draw(t, "input")
	}
	var moving []Input
	for i := range Input(NumInputs) {
		if next, _ := Step(f, s, i); next != s && next != Destroying && next != Removed {
			moving = append(moving, i)
		}
	}
	if len(moving) == 0 {
		return anyInput().Draw(t, "input")
	}
	return rapid.SampledFrom(moving).Draw(t, "moving input")
}

// into lists, for the states that promise something to the owner, the only inputs that lead there.
// rdma_get_cm_event(3) and the calls' pages are the source.
var into = map[State][]Input{
	Bound: {
		Requested(OpBindAddr), Occurred(KindAddrError), CommandFailed(OpResolveAddr), CommandFailed(OpListen),
		Occurred(KindAddrInfoError), CommandFailed(OpResolveAddrInfo),
	},
	AddrResolved:     {Occurred(KindAddrResolved), Occurred(KindRouteError), CommandFailed(OpResolveRoute), CommandFailed(OpSetIBPath)},
	RouteResolved:    {Occurred(KindRouteResolved), CommandFailed(OpConnect)},
	Listening:        {Requested(OpListen)},
	Connecting:       {Requested(OpConnect)},
	Responded:        {Occurred(KindConnectResponse)},
	Connected:        {Occurred(KindEstablished), Requested(OpEstablish)},
	Disconnecting:    {Requested(OpDisconnect)},
	PeerDisconnected: {Occurred(KindDisconnected)},
	Timewait:         {Occurred(KindDisconnected), Requested(OpDisconnect)},
	Failed: {
		Requested(OpReject), CommandFailed(OpAccept), CommandFailed(OpEstablish), Occurred(KindRejected),
		Occurred(KindUnreachable), Occurred(KindConnectError), Occurred(KindAddrError),
	},
	Removed:    {Occurred(KindDeviceRemoval)},
	Destroying: {Requested(OpDestroyID)},
}

// TestWalks sends identifiers of all flavors on random walks and checks the invariants on each.
func TestWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Flavor(rapid.IntRange(0, NumFlavors-1).Draw(t, "flavor"))
		s := Idle
		if Exists(f, ConnectRequested) && rapid.Bool().Draw(t, "child") {
			s = ConnectRequested
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			in := likelyInput(t, f, s)
			next, v := Step(f, s, in)
			checkStep(t, f, s, in, next, v)
			s = next
		}
	})
}

func checkStep(t *rapid.T, f Flavor, s State, in Input, next State, v Verdict) {
	if !Exists(f, next) {
		t.Fatalf("%v: %v, %v -> %v, which such an identifier never is in", f, s, in, next)
	}
	if only := into[next]; next != s && only != nil && !slices.Contains(only, in) && (f&UD == 0 || in != Requested(OpAccept)) {
		t.Fatalf("%v: %v -> %v by %v", f, s, next, in)
	}
	if next != s && v != Allow {
		t.Fatalf("%v: %v, %v is %v and changes the state", f, s, in, v)
	}
	switch s {
	case Failed:
		if next != Failed && next != Removed && next != Destroying {
			t.Fatalf("%v: failed, %v -> %v", f, in, next)
		}
	case Timewait:
		if next != Timewait && next != Removed && next != Destroying {
			t.Fatalf("%v: timewait, %v -> %v", f, in, next)
		}
	case Removed:
		if next != Removed && in != Requested(OpDestroyID) {
			t.Fatalf("%v: removed, %v -> %v", f, in, next)
		}
	case Destroying:
		if next != Destroying {
			t.Fatalf("%v: destroying, %v -> %v", f, in, next)
		}
	}
	if again, _ := Step(f, s, in); again != next {
		t.Fatalf("%v: %v, %v gives %v and then %v", f, s, in, next, again)
	}
	if _, v := Step(f, s, Requested(OpDestroyID)); (v == Allow) != (s != Destroying) {
		t.Fatalf("%v: DestroyID in %v is %v", f, s, v)
	}
}

// TestOvertaken: events may overtake a command's outcome. An outcome or event that finds the
// identifier dead moves nothing.
func TestOvertaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Device | Flavor(rapid.IntRange(0, NumFlavors-1).Draw(t, "flavor"))
		s := State(rapid.IntRange(0, NumStates-1).Draw(t, "state"))
		op := Op(rapid.IntRange(0, numOps-1).Draw(t, "op"))
		after, v := Step(f, s, Requested(op))
		if v != Allow || !hasDevice(f, s) || op == OpDestroyID {
			return // nothing is under way, or there is no device to lose
		}
		removed, _ := Step(f, after, Occurred(KindDeviceRemoval))
		if removed != Removed {
			t.Fatalf("%v: %v after %v, device removed: %v", f, after, op, removed)
		}
		if late, v := Step(f, removed, CommandFailed(op)); late != Removed || v != Allow {
			t.Fatalf("%v: %v fails after the removal: %v %v, want the answer reported and the state kept", f, op, late, v)
		}
	})
}

// TestFailedCommandUndone: a command that fails immediately leaves the identifier where the same or
// a milder command is legal again, except where the kernel notifies the peer (Accept, Establish,
// Reject).
func TestFailedCommandUndone(t *testing.T) {
	final := []Op{OpAccept, OpEstablish, OpReject, OpDestroyID}
	cells(func(f Flavor, s State, in Input) {
		op, _ := in.commandOf()
		if int(in) >= firstFailed || !Exists(f, s) || slices.Contains(final, op) {
			return
		}
		next, v := Step(f, s, in)
		if v != Allow {
			return
		}
		back, _ := Step(f, next, CommandFailed(op))
		if _, v := Step(f, back, in); v != Allow && op != OpDisconnect {
			t.Errorf("%v: %v in %v fails, then %v is not legal in %v", f, op, s, op, back)
		}
	})
}
