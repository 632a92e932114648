package differential

import (
	"slices"
	"strings"
)

// Entry is an accepted difference: what Left and Right show, when, and why that is right. A * in
// Command and in the values of Deltas stands for anything.
type Entry struct {
	Pairs   []string // names of Pairs
	Command string   // as Step has it without the identifier: "connect(*)"
	States  []string // in which the command found its identifier
	Deltas  []Delta  // all of them, or the entry does not match
	Ends    bool     // the drivers are in different states from here on: the program is over
	Rare    bool     // a matter of luck: it is no fault when a long run does not show it
	Why     string
}

// Delta is one thing that differs. Of is "answer", or "events", "params" (what events say of depths
// and the like), "state", "local", "peer" or "device" of "self", the identifier that
// was commanded, or of "other", another one.
type Delta struct{ Of, Left, Right string }

// The pairs.
const (
	EmbeddedPair = "twin embedded, iwarp"
	TwinsPair    = "twin iWARP, twin embedded"
	SoftPair     = "siw, iwarp"
	RoCEPair     = "rxe, twin IB"
	SiwTwinPair  = "siw, twin iWARP"
)

func (e *Entry) matches(pair string, st Step, before string) bool {
	return slices.Contains(e.Pairs, pair) && slices.Contains(e.States, before) && like(e.Command, st.Verb+"("+st.Arg+")")
}

// find gives the indexes of the entry's deltas, nil when one of them is not there.
func (e *Entry) find(deltas []Delta) []int {
	var places []int
	for _, want := range e.Deltas {
		i := slices.IndexFunc(deltas, func(d Delta) bool {
			return d.Of == want.Of && like(want.Left, d.Left) && like(want.Right, d.Right)
		})
		if i < 0 || slices.Contains(places, i) {
			return nil
		}
		places = append(places, i)
	}
	return places
}

// like reports whether s matches pattern, where a * is anything.
func like(pattern, s string) bool {
	head, rest, more := strings.Cut(pattern, "*")
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	if !more {
		return s == ""
	}
	for i := range len(s) + 1 {
		if like(rest, s[i:]) {
			return true
		}
	}
	return false
}
