package differential

import (
	"slices"
	"strings"
)

// Entry is an accepted difference: what Left and Right show, in which case, and why that is right.
// A * in Command and in the values of Deltas stands for any text.
type Entry struct {
	Pairs   []string // names of the pairs that it is for
	Command string   // a Step without the identifier: "connect(*)"
	States  []string // of the identifier before the command
	Deltas  []Delta  // all of them, or the entry does not match
	Ends    bool     // the program ends here, because the drivers are in different states
	Rare    bool     // a matter of chance: a long run need not show it
	Why     string
}

// Delta is one thing that differs. Of says which: "answer", or one of "events", "params" (the
// connection parameters in events), "state", "local", "peer" and "device". All but "answer" are
// followed by "self" for the identifier of the command, or by "other" for another one.
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

// find returns the indexes of the entry's deltas, or nil if one of them is missing.
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

// like reports whether s matches pattern, in which a * stands for any text.
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
