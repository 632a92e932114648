package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rdmactor/rdmactor/states"
)

// Lengths and probabilities of generated programs.
const (
	fewestTurns, mostTurns = 6, 30
	anything               = 15 // per cent of commands drawn from all commands
	backToBack             = 12 // per cent of commands followed by another at once
	costly                 = 5  // per cent of costly commands that are kept
	mostChildren           = 6
)

// Generate draws the program of a seed. The guide runs the program meanwhile, and the guide's
// states decide which command is likely to be next.
func (p *Pair) Generate(seed uint64) (Program, error) {
	rig, err := p.Guide.Open()
	if err != nil {
		return nil, err
	}
	w, err := newWorld(rig)
	if err != nil {
		return nil, err
	}
	g := generator{w: w, rng: rand.New(rand.NewPCG(seed, 0xd1ff)), hosts: p.hosts, costly: p.Costly}
	var prog Program
	for n := fewestTurns + g.rng.IntN(mostTurns-fewestTurns+1); len(prog) < n; {
		t := Turn{g.step()}
		for g.rng.IntN(100) < backToBack {
			t = append(t, g.step())
		}
		w.run(t, nil)
		prog = append(prog, t)
	}
	return prog, w.close()
}

// hosts reports whether all drivers of the pair have the hosts in an argument.
func (p *Pair) hosts(arg string) bool {
	for _, s := range []Side{p.Guide, p.Left, p.Right} {
		rig, err := s.Open()
		if err != nil {
			return false
		}
		for part := range strings.SplitSeq(arg, ">") {
			if host, _, ok := strings.Cut(part, ":"); ok && !rig.host(host).IsValid() {
				return false
			}
		}
	}
	return true
}

type generator struct {
	w     *world
	rng   *rand.Rand
	hosts func(arg string) bool

	costly func(verb string, s states.State) bool
}

// move is a command with its weight.
type move struct {
	Step
	weight int
}

// step draws commands until one of them may be sent.
func (g *generator) step() Step {
	for {
		st := g.draw()
		s := g.w.slots[st.Who]
		switch {
		case s.id == nil:
			return st
		case st.Verb == "notify" && st.Arg == "migrated" && s.id.Flavor()&states.IWARP == 0 && s.id.State() == states.Connected:
			// The kernel would switch to the alternate path, which does not exist. Nothing would
			// reach the peer any more.
		case strings.HasSuffix(st.Arg, "d200") && s.qp == nil && s.id.Flavor()&states.IWARP == 0:
			// Without a queue pair nobody corrects the depth, and it is more than the peer's device
			// can serve.
		case g.costly != nil && g.costly(st.Verb, s.id.State()) && g.rng.IntN(100) >= costly:
		default:
			return st
		}
	}
}

func (g *generator) draw() Step {
	if g.rng.IntN(100) < anything {
		return g.any()
	}
	var moves []move
	for _, name := range g.w.order {
		moves = append(moves, g.next(g.w.slots[name])...)
	}
	total := 0
	for _, m := range moves {
		total += m.weight
	}
	at := g.rng.IntN(total)
	for _, m := range moves {
		if at -= m.weight; at < 0 {
			m.Arg = g.arg(m.Step)
			return m.Step
		}
	}
	panic("differential: weights do not add up")
}

// names returns the names of the commands in order.
func names() []string { return slices.Sorted(maps.Keys(verbs)) }

// any draws any command for any identifier.
func (g *generator) any() Step {
	names := names()
	for {
		st := Step{Who: g.w.order[g.rng.IntN(len(g.w.order))], Verb: names[g.rng.IntN(len(names))]}
		if s := g.w.slots[st.Who]; (s.id == nil) == (st.Verb == "create") && !s.child(st.Verb) {
			st.Arg = g.pick(verbs[st.Verb].args)
			return st
		}
	}
}

// pick draws an argument whose hosts exist.
func (g *generator) pick(args []string) string {
	for {
		if arg := args[g.rng.IntN(len(args))]; g.hosts(arg) {
			return arg
		}
	}
}

// child reports whether verb would create the child of a listener, which is not possible.
func (s *slot) child(verb string) bool { return verb == "create" && strings.HasPrefix(s.name, "c") }

// arg draws an argument, mostly the most usual one.
func (g *generator) arg(st Step) string {
	args := verbs[st.Verb].args
	switch st.Verb {
	case "bind":
		args = []string{"any:0", "any:0", "any:0", "dev:0", "dev:x", "any:x"}
	case "resolve":
		args = []string{"dev:p", "dev:p", "dev:p", "dev:p", "dev:p", "second:p", "dev:x"}
	case "connect", "accept":
		args = []string{"", "", "3", "max", "d0", "3,d2"}
	}
	if g.rng.IntN(8) == 0 {
		args = verbs[st.Verb].args
	}
	return g.pick(args)
}

// next returns the commands that an application might send to an identifier now.
func (g *generator) next(s *slot) []move {
	if s.id == nil {
		switch s.name {
		case "a", "p":
			return []move{s.move("create", 20)}
		case "b", "q":
			return []move{s.move("create", 2)}
		}
		return nil
	}
	return g.steps(s, []move{s.move("destroy", 1), s.move("tos", 1)})
}

// steps appends to moves the commands that make sense in an identifier's state.
func (g *generator) steps(s *slot, moves []move) []move {
	m, iwarp, passive := s.move, s.id.Flavor()&states.IWARP != 0, s.end == g.w.passive
	qp := func(weight int) {
		if s.qp == nil && s.id.Device() != nil {
			moves = append(moves, m("qp", weight))
		}
	}
	switch s.id.State() {
	case states.Idle:
		moves = append(moves, m("reuseaddr", 1), m("afonly", 1))
		if passive {
			moves = append(moves, m("bind", 30))
		} else {
			moves = append(moves, m("bind", 3), m("resolve", 12))
		}
	case states.Bound:
		if passive {
			moves = append(moves, m("listen", 30))
		} else {
			moves = append(moves, m("resolve", 12))
		}
	case states.AddrResolved:
		moves = append(moves, m("route", 12))
		qp(4)
	case states.RouteResolved:
		switch {
		case s.qp == nil && iwarp:
			qp(20)
			moves = append(moves, m("connect", 1))
		case g.w.children < mostChildren:
			moves = append(moves, m("connect", 20))
			qp(5)
		}
	case states.ConnectRequested:
		if s.qp == nil && iwarp {
			qp(20)
			moves = append(moves, m("accept", 1))
		} else {
			moves = append(moves, m("accept", 16))
			qp(5)
		}
		moves = append(moves, m("reject", 3))
	case states.Responded:
		moves = append(moves, m("establish", 14), m("reject", 2))
	case states.Accepting:
		moves = append(moves, m("notify", 3))
	case states.Connected, states.Disconnecting:
		moves = append(moves, m("disconnect", 6), m("notify", 1), m("destroy", 2))
	case states.PeerDisconnected:
		moves = append(moves, m("disconnect", 8), m("destroy", 2))
	case states.Timewait, states.Failed:
		moves = append(moves, m("destroy", 8), m("disconnect", 1))
	}
	return moves
}

func (s *slot) move(verb string, weight int) move { return move{Step{Who: s.name, Verb: verb}, weight} }

// Shrink removes what a difference does not need: turns, then single commands, then unusual
// arguments. show reports whether a program still shows the difference.
func Shrink(prog Program, show func(Program) bool) Program {
	for size := len(prog) / 2; size > 0; {
		smaller := false
		for at := 0; at+size <= len(prog); {
			if try := slices.Concat(prog[:at], prog[at+size:]); len(try) > 0 && show(try) {
				prog, smaller = try, true
			} else {
				at += size
			}
		}
		if !smaller || size > len(prog) {
			size /= 2
		}
	}
	replace := func(i int, t Turn) bool {
		try := slices.Clone(prog)
		try[i] = t
		if !show(try) {
			return false
		}
		prog = try
		return true
	}
	for i := range prog {
		for n := 0; n < len(prog[i]) && len(prog[i]) > 1; {
			if !replace(i, slices.Concat(prog[i][:n], prog[i][n+1:])) {
				n++
			}
		}
		for n, st := range prog[i] {
			plain := verbs[st.Verb].args[0]
			if st.Arg == plain {
				continue
			}
			t := slices.Clone(prog[i])
			t[n].Arg = plain
			replace(i, t)
		}
	}
	return prog
}

// Finding is a difference with the program that shows it and how often it was found.
type Finding struct {
	Seed    uint64
	Program Program // shrunk
	Difference
	Again bool // the repeated program has shown it again
	Times int
}

// String returns the report for people.
func (f *Finding) String() string {
	again := ""
	if !f.Again {
		again = " (it did not show again)"
	}
	return fmt.Sprintf("%s, seed %d%s, %d times, in the program\n  %s\nat %v", f.Pair.Name, f.Seed, again, f.Times,
		strings.ReplaceAll(f.Program.String(), "\n", "\n  "), &f.Difference)
}
