package oracle

import "time"

// Integer judges the atomic operations on one integer of eight bytes. They must have an order in
// which none precedes an operation that ended before it was requested, and in which each finds the
// result of its predecessors.
type Integer struct {
	Fail Fail

	name    string
	ops     []*Atomic
	entries int
}

// Atomic is an atomic operation.
type Atomic struct {
	i       *Integer
	swap    bool
	a, b    uint64 // addend; or compare value and new value
	old     uint64
	asked   int // position among the entries of this integer
	ended   int
	done    bool
	refused bool
}

// Integer enters an integer with the value 0.
func (l *Grants) Integer(name string) *Integer { return &Integer{Fail: l.Fail, name: name} }

// Add enters a FetchAdd that is about to be requested.
func (i *Integer) Add(n uint64) *Atomic { return i.addOp(&Atomic{a: n}) }

// Swap enters a CompareSwap that is about to be requested.
func (i *Integer) Swap(compare, swap uint64) *Atomic {
	return i.addOp(&Atomic{swap: true, a: compare, b: swap})
}

func (i *Integer) addOp(op *Atomic) *Atomic {
	i.entries++
	op.i, op.asked = i, i.entries
	i.ops = append(i.ops, op)
	return op
}

// Done enters an operation's answer.
func (op *Atomic) Done(old uint64) {
	op.i.entries++
	op.done, op.old, op.ended = true, old, op.i.entries
}

// Refused enters that an operation was refused: it had no effect. One that is never answered, or
// that fails in another way, may have had its effect.
func (op *Atomic) Refused() { op.refused = true }

// valueAfter returns the integer's value after the operation.
func (op *Atomic) valueAfter(v uint64) uint64 {
	switch {
	case !op.swap:
		return v + op.a
	case v == op.a:
		return op.b
	}
	return v
}

// End judges the operations when none is under way. value is the integer's value.
func (i *Integer) End(now time.Duration, value uint64) {
	var ops []*Atomic
	for _, op := range i.ops {
		if !op.refused {
			ops = append(ops, op)
		}
	}
	const most = 64 // the set of executed operations is a word
	if len(ops) > most {
		return
	}
	s := search{ops: ops, want: value, seen: make(map[place]bool)}
	if !s.tryFrom(place{}) {
		i.Fail("%v: %s: no order of the %d atomic operations explains what they found, and the %d that is left", now, i.name, len(ops), value)
	}
}

// search searches for an order.
type search struct {
	ops  []*Atomic
	want uint64
	seen map[place]bool
}

// place is a state of the search.
type place struct{ done, value uint64 }

func (s *search) tryFrom(p place) bool {
	if s.seen[p] {
		return false
	}
	s.seen[p] = true
	if s.isComplete(p) {
		return true
	}
	for n, op := range s.ops {
		if p.done>>n&1 == 1 || !s.canBeNext(p, op) || op.done && op.old != p.value {
			continue
		}
		if s.tryFrom(place{p.done | 1<<n, op.valueAfter(p.value)}) {
			return true
		}
	}
	return false
}

// isComplete reports whether all answered operations are executed, and the integer has its final
// value.
func (s *search) isComplete(p place) bool {
	for n, op := range s.ops {
		if op.done && p.done>>n&1 == 0 {
			return false
		}
	}
	return p.value == s.want
}

// canBeNext reports whether op can be the next one: no pending operation had ended when op was
// requested.
func (s *search) canBeNext(p place, op *Atomic) bool {
	for n, o := range s.ops {
		if p.done>>n&1 == 0 && o != op && o.done && o.ended < op.asked {
			return false
		}
	}
	return true
}
