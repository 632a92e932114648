package tables

// ordered is a map that is iterated in the order in which its keys were added, so that a run of a
// simulation is repeated exactly. The zero value can be used.
type ordered[K comparable, V any] struct {
	m           map[K]*item[K, V]
	first, last *item[K, V]
}

type item[K comparable, V any] struct {
	key        K
	value      V
	prev, next *item[K, V]
}

func (o *ordered[K, V]) len() int { return len(o.m) }

func (o *ordered[K, V]) get(k K) (v V, ok bool) {
	if e := o.m[k]; e != nil {
		return e.value, true
	}
	return v, false
}

// add adds a key that must not be present.
func (o *ordered[K, V]) add(k K, v V) {
	if o.m == nil {
		o.m = make(map[K]*item[K, V])
	}
	e := &item[K, V]{key: k, value: v, prev: o.last}
	if o.last != nil {
		o.last.next = e
	} else {
		o.first = e
	}
	o.last, o.m[k] = e, e
}

// remove reports whether the key was there.
func (o *ordered[K, V]) remove(k K) (v V, ok bool) {
	e := o.m[k]
	if e == nil {
		return v, false
	}
	delete(o.m, k)
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		o.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		o.last = e.prev
	}
	return e.value, true
}

// all calls do for each, oldest first. do may remove the one that it is called for.
func (o *ordered[K, V]) all(do func(k K, v V)) {
	for e := o.first; e != nil; {
		next := e.next
		do(e.key, e.value)
		e = next
	}
}
