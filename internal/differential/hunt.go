package differential

import "time"

// Hunt runs many programs to find differences.
type Hunt struct {
	Pair  *Pair
	First uint64 // seed
	Count int
	// Most ends the run after this number of different findings.
	Most int
	// ShrinkFor bounds the time to shrink each finding.
	ShrinkFor time.Duration
	// Each is called after each program, and Found with each finding. Both may be nil.
	Each  func(seed uint64, prog Program)
	Found func(*Finding)
}

// Result is the result of a run.
type Result struct {
	Programs, Turns, Commands int
	Findings                  []*Finding
	Used                      map[*Entry]int
}

// Run runs the programs of Count seeds from First on.
func (h *Hunt) Run() (*Result, error) {
	res := &Result{Used: make(map[*Entry]int)}
	kinds := make(map[string]*Finding)
	for seed := h.First; seed < h.First+uint64(h.Count) && len(res.Findings) < h.Most; seed++ {
		prog, err := h.Pair.Generate(seed)
		if err != nil {
			return res, err
		}
		d, err := h.Pair.Run(prog, res.Used)
		if err != nil {
			return res, err
		}
		res.Programs++
		res.Turns += len(prog)
		for _, t := range prog {
			res.Commands += len(t)
		}
		if h.Each != nil {
			h.Each(seed, prog)
		}
		if d == nil {
			continue
		}
		if f := kinds[d.kind()]; f != nil {
			f.Times++
			continue
		}
		f := h.reduce(seed, prog, d)
		kinds[d.kind()] = f
		// After shrinking, it is a finding that is known already.
		if first := kinds[f.kind()]; first != nil && first != f {
			first.Times++
			kinds[d.kind()] = first
			continue
		}
		kinds[f.kind()] = f
		res.Findings = append(res.Findings, f)
		if h.Found != nil {
			h.Found(f)
		}
	}
	return res, nil
}

// reduce shrinks a finding.
func (h *Hunt) reduce(seed uint64, prog Program, d *Difference) *Finding {
	f := &Finding{Seed: seed, Program: prog[:d.Number+1], Difference: *d, Times: 1}
	deadline := time.Now().Add(h.ShrinkFor)
	show := func(try Program) bool {
		if time.Now().After(deadline) {
			return false
		}
		got, err := h.Pair.Run(try, make(map[*Entry]int))
		if err != nil || got == nil || !got.same(d) {
			return false
		}
		f.Difference = *got
		return true
	}
	if f.Again = show(f.Program); f.Again {
		f.Program = Shrink(f.Program, show)
	}
	return f
}
