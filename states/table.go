package states

import "strconv"

// Verdict is the decision of Step about an input.
type Verdict uint8

// The verdicts.
const (
	// Allow: do the command, or report the event; the next state applies.
	Allow Verdict = iota
	// Ignore: an event to be swallowed, because it is late, a duplicate, or never asked for.
	Ignore
	// Refuse: a command that the kernel refuses too, with the same errno.
	Refuse
	// Guard: a command that the kernel would carry out, although that harms a connection or the
	// machine, or although the manual page forbids it. It is refused with EINVAL. Guards lists
	// these commands.
	Guard
)

// String names the verdict: "allow".
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ignore:
		return "ignore"
	case Refuse:
		return "refuse"
	case Guard:
		return "guard"
	}
	return "Verdict(" + strconv.Itoa(int(v)) + ")"
}

// MarshalText returns String's text.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// cell is the answer for one flavor, state and input. Its errno and text stand in reasons.
type cell struct {
	next    State
	verdict Verdict
}

var (
	table [NumFlavors][NumStates][NumInputs]cell
	// reasons points at the deciding rule, nil where none was written down.
	reasons [NumFlavors][NumStates][NumInputs]*rule
)

func init() {
	for f := range NumFlavors {
		for s := range NumStates {
			for i := range NumInputs {
				table[f][s][i], reasons[f][s][i] = decideCell(Flavor(f), State(s), Input(i))
			}
		}
	}
}

// Step judges an input to an identifier of flavor f in state s. next is s unless the verdict is
// Allow. Step is a pure function, has an answer for any values, and does not allocate.
func Step(f Flavor, s State, in Input) (next State, v Verdict) {
	if int(s) >= NumStates || int(in) >= NumInputs {
		return s, Refuse
	}
	c := table[f%Flavor(NumFlavors)][s][in]
	return c.next, c.verdict
}

// decideCell finds a cell's rule and completes the values that the rule leaves open.
func decideCell(f Flavor, s State, in Input) (cell, *rule) {
	judged := s
	if !Exists(f, s) {
		judged = Failed
	}
	r := findRule(f, judged, in)
	if r == nil {
		return cell{s, defaultVerdict(in)}, nil
	}
	if r.to == stay {
		return cell{s, r.verdict}, r
	}
	return cell{r.to, r.verdict}, r
}

// findRule returns the rule that decides a cell, nil when there is none.
func findRule(f Flavor, s State, in Input) *rule {
	if hasDevice(f, s) {
		f |= Device
	} else {
		f &^= Device
	}
	for _, group := range rules {
		for i := range group {
			r := &group[i]
			if r.in == in && r.flavors.has(f) && r.from.has(s) {
				return r
			}
		}
	}
	return nil
}

// defaultVerdict returns the verdict on inputs that no rule decides.
func defaultVerdict(in Input) Verdict {
	switch i := int(in); {
	case i < firstFailed, i == unknownCommand:
		return Refuse
	case i < firstOccurred:
		return Allow
	}
	return Ignore
}
