package cmid

import "github.com/rdmactor/rdmactor/states"

const historyLen = 8

// history has an identifier's last transitions, in a ring. The last one's state is the present one.
type history struct {
	ring  [historyLen]Transition
	steps uint32 // transitions so far
}

func (h *history) add(t Transition) {
	h.ring[h.steps%historyLen] = t
	h.steps++
}

// last returns the transition to the present state.
func (h *history) last() Transition { return h.ring[(h.steps-1)%historyLen] }

// transitions returns the last transitions, oldest first.
func (h *history) transitions() []Transition {
	n := min(h.steps, historyLen)
	list := make([]Transition, 0, n)
	for i := h.steps - n; i < h.steps; i++ {
		list = append(list, h.ring[i%historyLen])
	}
	return list
}

// mark is a place in an identifier's history. A command that fails immediately restores it.
type mark struct {
	state       states.State
	steps       uint32
	overwritten Transition // by the next transition
}

func (h *history) mark() mark {
	return mark{h.last().State, h.steps, h.ring[h.steps%historyLen]}
}

// undo removes the transition that followed m, if it was the only one. ok: it was.
func (h *history) undo(m mark) (ok bool) {
	if h.steps != m.steps+1 {
		return false
	}
	h.steps = m.steps
	h.ring[h.steps%historyLen] = m.overwritten
	return true
}
