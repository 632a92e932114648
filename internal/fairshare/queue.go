package fairshare

import "slices"

// Queue is a queue in which keys take turns: in the order of their arrival, one value of each key
// is taken, then the next one of each. So a key with many values delays only its own. A taken value
// runs until Done. A value may have several keys, such as a listener and one of its peers: the
// second takes turns with others of the first. All values have equally many keys. The queue is not
// bounded. The zero Queue is empty. The caller locks.
type Queue[K comparable, V any] struct {
	waiting, running int
	parts            map[K]*Queue[K, V]
	turns            []*Queue[K, V] // the parts with values that wait, in the order of their turns
	values           []V            // of the last key
}

// Waiting returns how many values wait.
func (q *Queue[K, V]) Waiting() int { return q.waiting }

// Running returns how many values were taken and are not done.
func (q *Queue[K, V]) Running() int { return q.running }

// Put adds a value.
func (q *Queue[K, V]) Put(v V, keys ...K) {
	q.waiting++
	if len(keys) == 0 {
		q.values = append(q.values, v)
		return
	}
	p := q.parts[keys[0]]
	if p == nil {
		if q.parts == nil {
			q.parts = make(map[K]*Queue[K, V])
		}
		p = new(Queue[K, V])
		q.parts[keys[0]] = p
	}
	if p.waiting == 0 {
		q.turns = append(q.turns, p)
	}
	p.Put(v, keys[1:]...)
}

// Take takes the oldest value of the key whose turn it is, among the keys that have fewer values
// running than may still start. left is how many more may start; math.MaxInt: keys only take turns.
// Not ok: no value may.
func (q *Queue[K, V]) Take(left int) (v V, ok bool) {
	switch {
	case left <= 0:
		return v, false
	case len(q.values) > 0:
		v, q.values[0] = q.values[0], v
		q.values = q.values[1:]
		q.waiting--
		q.running++
		return v, true
	}
	for i, p := range q.turns {
		if v, ok = p.Take(left - p.running); !ok {
			continue
		}
		q.waiting--
		q.running++
		q.turns = slices.Delete(q.turns, i, i+1)
		if p.waiting > 0 {
			q.turns = append(q.turns, p)
		}
		return v, true
	}
	return v, false
}

// Done ends a value that was taken.
func (q *Queue[K, V]) Done(keys ...K) {
	q.running--
	if len(keys) > 0 {
		q.parts[keys[0]].Done(keys[1:]...)
		q.forgetEmpty(keys[0])
	}
}

// Drop removes the first waiting value of these keys for which is returns true, and reports whether
// it found one.
func (q *Queue[K, V]) Drop(is func(V) bool, keys ...K) (dropped bool) {
	if len(keys) == 0 {
		i := slices.IndexFunc(q.values, is)
		if i < 0 {
			return false
		}
		q.values = slices.Delete(q.values, i, i+1)
		q.waiting--
		return true
	}
	p := q.parts[keys[0]]
	if p == nil || !p.Drop(is, keys[1:]...) {
		return false
	}
	q.waiting--
	if p.waiting == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(other *Queue[K, V]) bool { return other == p })
	}
	q.forgetEmpty(keys[0])
	return true
}

// forgetEmpty forgets a key without values.
func (q *Queue[K, V]) forgetEmpty(k K) {
	if p := q.parts[k]; p.running+p.waiting == 0 {
		delete(q.parts, k)
	}
}

// All yields the values that wait, those of a key from the oldest on.
func (q *Queue[K, V]) All(yield func(V) bool) {
	for _, v := range q.values {
		if !yield(v) {
			return
		}
	}
	for _, p := range q.turns {
		for v := range p.All {
			if !yield(v) {
				return
			}
		}
	}
}

// Unserved reports whether there is a key with values that wait and none that runs.
func (q *Queue[K, V]) Unserved() bool {
	return slices.ContainsFunc(q.turns, func(p *Queue[K, V]) bool { return p.running == 0 })
}
