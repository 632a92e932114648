package states

import "strings"

// Edge is one arrow of the diagram with the names of all inputs that take it.
type Edge struct {
	From, To State
	Inputs   []string
}

// Edges returns the arrows of a flavor: the inputs that are allowed and change the state. DestroyID
// and DeviceRemoval lead out of nearly every state and are drawn once, by the callers.
func Edges(f Flavor) []Edge {
	f |= Device
	var es []Edge
	for s := range State(NumStates) {
		if !Exists(f, s) || dead.has(s) {
			continue
		}
		first := len(es)
		for i := range Input(NumInputs) {
			next, v := Step(f, s, i)
			if v != Allow || next == s || dead.has(next) {
				continue
			}
			at := first
			for at < len(es) && es[at].To != next {
				at++
			}
			if at == len(es) {
				es = append(es, Edge{From: s, To: next})
			}
			es[at].Inputs = append(es[at].Inputs, i.String())
		}
	}
	return es
}

// Mermaid draws the state machine of a flavor as a Mermaid stateDiagram-v2. DestroyID and
// DeviceRemoval, which nearly every state has, start from two extra states; inputs that change
// nothing are left out.
func Mermaid(f Flavor) string {
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

// DOT draws the same diagram for Graphviz.
func DOT(f Flavor) string {
	var b strings.Builder
	b.WriteString("digraph rdma_cm_id {\n    node [shape=box, style=rounded]\n")
	b.WriteString("    new [shape=point]\n    any [label=\"any state\", style=dashed]\n    attached [label=\"any state with a device\", style=dashed]\n")
	arrow := func(from, to, label string) {
		b.WriteString("    " + from + " -> " + to + " [label=\"" + label + "\"]\n")
	}
	quote := func(s State) string { return "\"" + s.String() + "\"" }
	arrow("new", quote(Idle), "create_id")
	if Exists(f, ConnectRequested) {
		arrow("new", quote(ConnectRequested), "ConnectRequest\\non a listener")
	}
	for _, e := range Edges(f) {
		arrow(quote(e.From), quote(e.To), strings.Join(e.Inputs, "\\n"))
	}
	arrow("attached", quote(Removed), Occurred(KindDeviceRemoval).String())
	arrow("any", quote(Destroying), OpDestroyID.String())
	b.WriteString("}\n")
	return b.String()
}
