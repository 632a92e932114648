package metrics

// names assigns labels to keys, at most a given number. A key keeps its label for as long as it is
// seen, and has it alone; a key without a label stays without one. So no sum moves from one label
// to another, except that the sums of keys that have gone move to the rest. Only one reading at a
// time.
type names struct {
	most  int
	rest  string            // the label of all others
	given map[string]string // by key
	keeps bool              // a key keeps its label forever
}

func newNames(most int, rest string) *names {
	return &names{most: most, rest: rest, given: make(map[string]string)}
}

// keptNames returns names that never withdraw a label, so a key's counts stay in their sum.
func keptNames(most int, rest string) *names {
	n := newNames(most, rest)
	n.keeps = true
	return n
}

// assignLabels labels the keys seen now. key and text return those of the item at i; text is the
// label's.
func (n *names) assignLabels(count int, key, text func(i int) string) {
	now, taken := make(map[string]string, count), make(map[string]bool)
	if n.keeps {
		for k, l := range n.given {
			if l != n.rest {
				now[k], taken[l] = l, true
			}
		}
	}
	for i := range count {
		if l, ok := n.given[key(i)]; ok {
			now[key(i)] = l
			if l != n.rest {
				taken[l] = true
			}
		}
	}
	for i := range count {
		if _, ok := now[key(i)]; ok {
			continue
		}
		l := makeLabel(text(i))
		if l == "" || taken[l] || len(taken) >= n.most { // to Prometheus an empty label is none
			l = n.rest
		} else {
			taken[l] = true
		}
		now[key(i)] = l
	}
	n.given = now
}
