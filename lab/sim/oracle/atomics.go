package oracle

import "time"

// Integer judges the atomic operations on one integer of eight bytes: there is an order of them, in
// which none is before one that had ended when it was asked, and in which each found what the ones
// before it had left.
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
	a, b    uint64 // what to add; or what to compare with and what to swap in
	old     uint64
	asked   int // when, in entries of this integer
	ended   int
	done    bool
	refused bool
}

// Integer enters an integer, which is 0.
func (l *Grants) Integer(name string) *Integer { return &Integer{Fail: l.Fail, name: name} }

// Add enters a FetchAdd that is about to be asked.
func (i *Integer) Add(n uint64) *Atomic { return i.enter(&Atomic{a: n}) }

// Swap enters a CompareSwap that is about to be asked.
func (i *Integer) Swap(compare, swap uint64) *Atomic {
	return i.enter(&Atomic{swap: true, a: compare, b: swap})
}

func (i *Integer) enter(op *Atomic) *Atomic {
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

// Refused enters that an operation was refused: it has done nothing. One that is never answered, or
// that failed in another way, may have been done.
func (op *Atomic) Refused() { op.refused = true }

// after is what the integer is after the operation.
func (op *Atomic) after(v uint64) uint64 {
	switch {
	case !op.swap:
		return v + op.a
	case v == op.a:
		return op.b
	}
	return v
}

// End is called when no operation is under way any more. value is what the integer is now.
func (i *Integer) End(now time.Duration, value uint64) {
	var ops []*Atomic
	for _, op := range i.ops {
		if !op.refused {
			ops = append(ops, op)
		}
	}
	const most = 64 // the set of those that were done is a word
	if len(ops) > most {
		return
	}
	s := search{ops: ops, want: value, seen: make(map[place]bool)}
	if !s.from(place{}) {
		i.Fail("%v: %s: no order of the %d atomic operations explains what they found, and the %d that is left", now, i.name, len(ops), value)
	}
}

// search looks for an order.
type search struct {
	ops  []*Atomic
	want uint64
	seen map[place]bool
}

// place is how far it has come.
type place struct{ done, value uint64 }

func (s *search) from(p place) bool {
	if s.seen[p] {
		return false
	}
	s.seen[p] = true
	if s.enough(p) {
		return true
	}
	for n, op := range s.ops {
		if p.done>>n&1 == 1 || !s.first(p, op) || op.done && op.old != p.value {
			continue
		}
		if s.from(place{p.done | 1<<n, op.after(p.value)}) {
			return true
		}
	}
	return false
}

// enough reports whether all that was answered is done, and the integer is as it is.
func (s *search) enough(p place) bool {
	for n, op := range s.ops {
		if op.done && p.done>>n&1 == 0 {
			return false
		}
	}
	return p.value == s.want
}

// first reports whether op can be the next one: nothing that is not done had ended when it was
// asked.
func (s *search) first(p place, op *Atomic) bool {
	for n, o := range s.ops {
		if p.done>>n&1 == 0 && o != op && o.done && o.ended < op.asked {
			return false
		}
	}
	return true
}
