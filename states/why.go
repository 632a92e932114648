package states

// Reason explains a verdict that is not Allow.
type Reason struct {
	Text  string // the reason and the alternative, with the manual page; "" for Allow
	Errno Errno  // the kernel's; 0 for Allow and Ignore
	Legal []Op   // commands that are legal in that state, in the order of the Op constants
}

// Why explains Step's verdict on the same arguments. It allocates; it is for errors and logs.
func Why(f Flavor, s State, in Input) Reason {
	legal := Legal(f, s)
	if int(s) >= NumStates || int(in) >= NumInputs {
		return Reason{Text: "no such state or command", Errno: EINVAL, Legal: legal}
	}
	f %= Flavor(NumFlavors)
	switch table[f][s][in].verdict {
	case Allow:
	case Ignore:
		return Reason{Text: stateInfo[s].now + ": " + in.String() + " is late, a duplicate, or was never asked for", Legal: legal}
	case Refuse, Guard:
		return Reason{Text: refusalText(f, s, in), Errno: errnoOf(f, s, in), Legal: legal}
	}
	return Reason{Legal: legal}
}

func refusalText(f Flavor, s State, in Input) string {
	op, ok := in.commandOf()
	if !ok {
		return "no such command"
	}
	page := " (" + op.C() + "(3))"
	if r := reasons[f][s][in]; r != nil {
		return r.why + page
	}
	if s == Removed || s == Destroying {
		return stateInfo[s].now + page
	}
	return stateInfo[s].now + ": " + opInfo[op].need + page
}

func errnoOf(f Flavor, s State, in Input) Errno {
	r := reasons[f][s][in]
	switch {
	case r != nil:
		return r.errno
	case int(in) == unknownCommand:
		return EINVAL
	case s == Removed:
		return ENXIO
	case s == Destroying:
		return ENOENT
	}
	return EINVAL
}

// Legal lists the commands that Step allows in state s, in the order of the Op constants.
func Legal(f Flavor, s State) []Op {
	var ops []Op
	for op := range Op(numOps) {
		if _, v := Step(f, s, Requested(op)); v == Allow {
			ops = append(ops, op)
		}
	}
	return ops
}
