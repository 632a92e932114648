package states

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
