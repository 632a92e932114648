package states

import "strings"

// This file has the parts of docs/states.md that are made from the table.

// mermaid draws the state machine of a flavor as a Mermaid stateDiagram-v2. DestroyID and
// DeviceRemoval, which nearly every state has, start from two extra states; inputs that change
// nothing are left out.
func mermaid(f Flavor) string {
	var b strings.Builder
	// "state" ids know no hyphen
	name := func(s State) string { return "s_" + strings.ReplaceAll(s.String(), "-", "_") }
	arrow := func(from, to, label string) { b.WriteString("    " + from + " --> " + to + " : " + label + "\n") }
	b.WriteString("stateDiagram-v2\n")
	for s := range State(NumStates) {
		if Exists(f, s) {
			b.WriteString("    state \"" + s.String() + "\" as " + name(s) + "\n")
		}
	}
	b.WriteString("    state \"any state\" as any\n    state \"any state with a device\" as attached\n")
	arrow("[*]", name(Idle), "create_id")
	if Exists(f, ConnectRequested) {
		arrow("[*]", name(ConnectRequested), "ConnectRequest on a listener")
	}
	for _, e := range Edges(f) {
		arrow(name(e.From), name(e.To), strings.Join(e.Inputs, ", "))
	}
	arrow("attached", name(Removed), Occurred(KindDeviceRemoval).String())
	arrow("any", name(Destroying), OpDestroyID.String())
	b.WriteString("    " + name(Destroying) + " --> [*]\n")
	return b.String()
}

// guarded is one entry of guards: a command that is refused although the kernel would carry it out.
type guarded struct {
	Op     Op
	States []State
	Text   string // the reason, the alternative, and the kernel's behaviour
	rule   *rule
}

// applies reports whether the entry concerns identifiers of flavor f in state s.
func (g guarded) applies(f Flavor, s State) bool {
	return int(s) < NumStates && reasons[f%Flavor(NumFlavors)][s][Requested(g.Op)] == g.rule
}

// guards lists every command that is guarded.
func guards() []guarded {
	var gs []guarded
	for i := range guardRules {
		r := &guardRules[i]
		op, _ := r.in.commandOf()
		g := guarded{Op: op, Text: r.why, rule: r}
		for s := range State(NumStates) {
			if r.from.has(s) {
				g.States = append(g.States, s)
			}
		}
		gs = append(gs, g)
	}
	return gs
}
