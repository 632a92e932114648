package states

import "strings"

// edge is one arrow of the diagram with all inputs that take it.
type edge struct {
	from, to State
	labels   []string
}

// edges gives the arrows of a flavor: what is allowed and changes the state. DestroyID and
// DeviceRemoval lead out of nearly every state and are drawn once, by the callers.
func edges(f Flavor) []edge {
	f |= Device
	var es []edge
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
			for at < len(es) && es[at].to != next {
				at++
			}
			if at == len(es) {
				es = append(es, edge{from: s, to: next})
			}
			es[at].labels = append(es[at].labels, i.String())
		}
	}
	return es
}

// Mermaid draws the state machine of a flavor as a Mermaid stateDiagram-v2. DestroyID and
// DeviceRemoval, which nearly every state has, start from two states of their own; inputs that
// change nothing are left out.
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
	for _, e := range edges(f) {
		arrow(name(e.from), name(e.to), strings.Join(e.labels, ", "))
	}
	arrow("attached", name(Removed), Occurred(KindDeviceRemoval).String())
	arrow("any", name(Destroying), OpDestroyID.String())
	b.WriteString("    " + name(Destroying) + " --> [*]\n")
	return b.String()
}

// DOT draws what Mermaid draws, for Graphviz.
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
	for _, e := range edges(f) {
		arrow(quote(e.from), quote(e.to), strings.Join(e.labels, "\\n"))
	}
	arrow("attached", quote(Removed), Occurred(KindDeviceRemoval).String())
	arrow("any", quote(Destroying), OpDestroyID.String())
	b.WriteString("}\n")
	return b.String()
}
