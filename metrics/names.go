package metrics

// names gives what is counted labels, and at most so many. Who has one keeps it for as long as it
// is seen, and has it alone; who has none stays without. So no sum moves from one label to another,
// but for those of who has gone: the rest has them then. Only one reading at a time.
type names struct {
	most  int
	rest  string            // the label of all others
	given map[string]string // by key
	keeps bool              // who has a label keeps it for good
}

func newNames(most int, rest string) *names {
	return &names{most: most, rest: rest, given: make(map[string]string)}
}

// keptNames are labels that are given for good: what has one stays in its sum.
func keptNames(most int, rest string) *names {
	n := newNames(most, rest)
	n.keeps = true
	return n
}

// give names what is seen now. Key and text are of the thing at i; text is what its label says.
func (n *names) give(count int, key, text func(i int) string) {
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
		l := label(text(i))
		if l == "" || taken[l] || len(taken) >= n.most { // no label is one to Prometheus
			l = n.rest
		} else {
			taken[l] = true
		}
		now[key(i)] = l
	}
	n.given = now
}
