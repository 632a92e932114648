package fairshare

// Turns is a queue in which keys take turns: each has one of its values taken, in the order in
// which the keys came, and then its next one when the others had theirs. So who puts in many waits
// for itself. It is not bounded. The zero Turns is empty. The caller locks.
type Turns[K comparable, V any] struct {
	order []K // keys that have values
	of    map[K][]V
}

// Put adds a value of k's.
func (t *Turns[K, V]) Put(k K, v V) {
	if t.of == nil {
		t.of = make(map[K][]V)
	}
	if len(t.of[k]) == 0 {
		t.order = append(t.order, k)
	}
	t.of[k] = append(t.of[k], v)
}

// Take takes the value whose turn it is. Not ok: there is none.
func (t *Turns[K, V]) Take() (v V, ok bool) {
	if len(t.order) == 0 {
		return v, false
	}
	k := t.order[0]
	t.order = t.order[1:]
	list := t.of[k]
	v, list[0] = list[0], v
	if list = list[1:]; len(list) == 0 {
		delete(t.of, k)
	} else {
		t.of[k] = list
		t.order = append(t.order, k)
	}
	return v, true
}
