package differential

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmactor/rdmactor/states"
)

// Side is a driver of a pair. Open sets the driver up anew for each program.
type Side struct {
	Name string
	Open func() (Rig, error)
}

// Pair is two drivers that should agree. Guide is the in-memory twin of their kind. Its states
// decide how programs are drawn, and its events decide how long to wait for Left.
type Pair struct {
	Name               string // as in Accepted
	Guide, Left, Right Side
	// Costly reports whether a command blocks a kernel for long in a state. The generator draws few
	// such commands. Costly may be nil.
	Costly func(verb string, s states.State) bool
}

// Difference is a turn in which the drivers of a pair differ.
type Difference struct {
	Pair   *Pair
	Number int // of the turn
	At     Turn
	State  string // of the first command's identifier, before the turn
	Deltas []Delta
}

// String returns the turn and each delta on lines of their own.
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "turn %d: %v, in state %s", d.Number+1, d.At, d.State)
	for _, x := range d.Deltas {
		fmt.Fprintf(&b, "\n  %s: %s has %q, %s has %q", x.Of, d.Pair.Left.Name, x.Left, d.Pair.Right.Name, x.Right)
	}
	return b.String()
}

// kind returns the command and what differs. Differences with the same cause have the same kind.
func (d *Difference) kind() string {
	verbs := make([]string, len(d.At))
	for i, st := range d.At {
		verbs[i] = st.Verb
	}
	return fmt.Sprintf("%v in %s: %v", verbs, d.State, d.Deltas)
}

// same reports whether d shows what o shows. It ignores the rest of the turn.
func (d *Difference) same(o *Difference) bool {
	return d.State == o.State && slices.Equal(d.Deltas, o.Deltas)
}

// before returns the state of each command's identifier before a turn, or "" if there is no
// identifier.
func (w *world) before(t Turn) []string {
	states := make([]string, len(t))
	for _, s := range w.slots {
		for _, a := range s.asked {
			if a.cmd != nil || a.step.Verb == "qp" {
				states[a.n] = a.before.String()
			}
		}
	}
	return states
}

// Run runs a program on both drivers. It returns the first difference that is not accepted, or nil.
// used counts how often each entry of Accepted was needed. An error means that the harness failed,
// or that a command came through that the state machine should have refused.
func (p *Pair) Run(prog Program, used map[*Entry]int) (d *Difference, err error) {
	var worlds []*world
	defer func() {
		for _, w := range worlds {
			err = errors.Join(err, w.close())
		}
	}()
	open := func(s Side) *world {
		rig, e := s.Open()
		var w *world
		if e == nil {
			w, e = newWorld(rig)
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("differential: %s: %w", s.Name, e))
			return nil
		}
		worlds = append(worlds, w)
		return w
	}
	guide, left, right := open(p.Guide), open(p.Left), open(p.Right)
	if err != nil {
		return nil, err
	}
	known := make(map[string]Delta)
	for i, t := range prog {
		l := left.run(t, guide.run(t, nil))
		r, before := right.run(t, l), left.before(t)
		if left.err != nil || right.err != nil {
			return nil, nil // close returns the errors
		}
		deltas := compare(l, r, known)
		if len(deltas) == 0 {
			continue
		}
		ends, rest := p.accept(t, before, deltas, known, used)
		switch {
		case len(rest) > 0:
			return &Difference{Pair: p, Number: i, At: t, State: before[0], Deltas: named(t, 0, rest)}, nil
		case ends:
			return nil, nil
		}
	}
	return nil, nil
}

// compare lists what differs, except differences that are known from an earlier turn.
func compare(l, r seen, known map[string]Delta) []Delta {
	var deltas []Delta
	add := func(of string) {
		d := Delta{of, l[of], r[of]}
		if d.Left == d.Right {
			delete(known, of)
		} else if known[of] != d && !slices.Contains(deltas, d) {
			deltas = append(deltas, d)
		}
	}
	for of := range l {
		add(of)
	}
	for of := range r {
		add(of)
	}
	slices.SortFunc(deltas, func(a, b Delta) int { return strings.Compare(a.Of, b.Of) })
	return deltas
}

// named returns the deltas with subjects relative to command n of a turn.
func named(t Turn, n int, deltas []Delta) []Delta {
	out := make([]Delta, len(deltas))
	for i, d := range deltas {
		what, who, _ := strings.Cut(d.Of, " ")
		switch {
		case what == "answer" && who == strconv.Itoa(n):
			d.Of = "answer"
		case what == "answer":
		case who == t[n].Who:
			d.Of = what + " self"
		default:
			d.Of = what + " other"
		}
		out[i] = d
	}
	return out
}

// accept removes the deltas that an entry of Accepted explains. All deltas of the entry must be
// present.
func (p *Pair) accept(t Turn, before []string, deltas []Delta, known map[string]Delta, used map[*Entry]int) (ends bool, rest []Delta) {
	rest = deltas
	for i := range Accepted {
		e := &Accepted[i]
		for n, st := range t {
			if !e.matches(p.Name, st, before[n]) {
				continue
			}
			found := e.find(named(t, n, rest))
			if found == nil {
				continue
			}
			used[e]++
			ends = ends || e.Ends
			kept := rest[:0:0]
			for i, d := range rest {
				if !slices.Contains(found, i) {
					kept = append(kept, d)
				} else if !strings.HasPrefix(d.Of, "answer") && !strings.HasPrefix(d.Of, "events") && !strings.HasPrefix(d.Of, "params") {
					known[d.Of] = d
				}
			}
			rest = kept
		}
	}
	return ends, rest
}
