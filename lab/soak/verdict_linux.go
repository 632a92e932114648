package main

import (
	"fmt"
	"slices"
	"time"
)

// metric is a quantity that must not grow.
type metric struct {
	name, unit string
	of         func(*row) float64
	factor     float64 // tolerated growth: a factor,
	plus       float64 // and a constant in addition
}

const mib = 1 << 20

// metrics are the quantities that must not grow. Caches are full from the beginning (stock, crowd).
// The rest fluctuates with the work under way: slabs for small messages, 256 KiB each, of which a
// pool keeps two free ones, and waiting messages.
var metrics = []metric{
	{"RSS", "MiB", func(r *row) float64 { return float64(r.RSS) / mib }, 1.1, 4},
	{"heap in use", "MiB", func(r *row) float64 { return float64(r.Heap) / mib }, 1.1, 1},
	{"goroutines", "", func(r *row) float64 { return float64(r.Goroutines) }, 1, 3},
	{"descriptors", "", func(r *row) float64 { return float64(r.FDs) }, 1, 3},
	{"identifiers", "", func(r *row) float64 { return float64(r.IDs) }, 1, 2},
	{"messages retained", "", func(r *row) float64 { return float64(r.Held) }, 1, 2},
}

// label returns the name and unit.
func (m *metric) label() string { return m.name + choose(m.unit == "", "", ", "+m.unit) }

// growth compares a metric of one process at two times.
type growth struct {
	Pair        string
	Side        side
	Calm        bool // only while there were no faults
	Metric      *metric
	Samples     int // of each third
	First, Last float64
	Worst       float64 // the highest of all
}

// isGrown reports whether it is more than the tolerance.
func (g *growth) isGrown() bool { return g.Last > g.First*g.Metric.factor+g.Metric.plus }

func (g *growth) String() string {
	return fmt.Sprintf("%s, %v: %s from %.1f to %.1f %s", g.Pair, g.Side, g.Metric.name, g.First, g.Last, g.Metric.unit)
}

// warmUp is the part of the time that is not judged: pools fill, and Go's heap finds its size.
const warmUp = 0.1

// judgeGrowth compares the median of the first third after the warm-up with that of the last third,
// for a process that has lived for the given time. Not ok: there are too few samples.
func judgeGrowth(rows []row, of *metric, lived time.Duration) (g growth, ok bool) {
	from := time.Duration(warmUp * float64(lived))
	third := (lived - from) / 3
	var first, last []float64
	for i := range rows {
		v := of.of(&rows[i])
		g.Worst = max(g.Worst, v)
		switch at := rows[i].At; {
		case at < from:
		case at < from+third:
			first = append(first, v)
		case at >= lived-third:
			last = append(last, v)
		}
	}
	const few = 3
	g.Metric, g.Samples = of, min(len(first), len(last))
	if g.Samples < few {
		return g, false
	}
	g.First, g.Last = median(first), median(last)
	return g, true
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// judgeAll judges every process of a pair that has lived as long as the soak.
func (p *pair) judgeAll() (all []growth) {
	for _, s := range []side{server, client} {
		if !p.isImmortal(s) {
			continue
		}
		for _, calm := range []bool{true, false} {
			rows := slices.DeleteFunc(slices.Clone(p.rows), func(r row) bool { return r.Side != s || calm && !r.Calm })
			for i := range metrics {
				g, ok := judgeGrowth(rows, &metrics[i], p.lived)
				if !ok {
					p.addProblem("%v: only %d samples to judge %s by", s, g.Samples, g.Metric.name)
					continue
				}
				g.Pair, g.Side, g.Calm = p.Name, s, calm
				if g.isGrown() {
					p.addProblem("it grows: %v", &g)
				}
				all = append(all, g)
			}
		}
	}
	return all
}

func choose[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}
