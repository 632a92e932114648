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
		return Reason{Text: refusal(f, s, in), Errno: errnoOf(f, s, in), Legal: legal}
	}
	return Reason{Legal: legal}
}

func refusal(f Flavor, s State, in Input) string {
	op, ok := in.op()
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
	for op := range Op(NumOps) {
		if _, v := Step(f, s, Requested(op)); v == Allow {
			ops = append(ops, op)
		}
	}
	return ops
}

// Guarded is one entry of Guards: a command that is refused although the kernel would carry it out.
type Guarded struct {
	Op     Op
	States []State
	Text   string // the reason, the alternative, and the kernel's behaviour
	rule   *rule
}

// Applies reports whether the entry concerns identifiers of flavor f in state s.
func (g Guarded) Applies(f Flavor, s State) bool {
	return int(s) < NumStates && reasons[f%Flavor(NumFlavors)][s][Requested(g.Op)] == g.rule
}

// Guards lists every command that is guarded. It is for the documentation and for the conformance
// tests, in which guarded commands never reach a driver.
func Guards() []Guarded {
	var gs []Guarded
	for i := range guardRules {
		r := &guardRules[i]
		op, _ := r.in.op()
		g := Guarded{Op: op, Text: r.why, rule: r}
		for s := range State(NumStates) {
			if r.from.has(s) {
				g.States = append(g.States, s)
			}
		}
		gs = append(gs, g)
	}
	return gs
}
