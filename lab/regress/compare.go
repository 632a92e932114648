package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// figures are the results of a run, by unit.
type figures map[string]float64

// Units of results.
const (
	cpu         = "cpu-ns/op" // of the whole process, with what prepares the benchmark
	elapsed     = "ns/op"
	allocations = "allocs/op"
	held        = "B/pair"

	instructions = "instructions/op"
)

// units are those that are compared. Their order is the table's.
var units = []string{cpu, elapsed, allocations, held, instructions}

// parseFigures reads what a test binary printed.
func parseFigures(r io.Reader) (figures, error) {
	f := figures{}
	for in := benchfmt.NewReader(r, ""); in.Scan(); {
		res, ok := in.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		for _, v := range res.Values {
			if v.OrigUnit != "" { // benchfmt has converted ns/op to sec/op
				f[v.OrigUnit] = v.OrigValue
				continue
			}
			f[v.Unit] = v.Value
		}
	}
	if len(f) == 0 {
		return nil, fmt.Errorf("no benchmark has run")
	}
	return f, nil
}

// comparison is one figure of a benchmark: medians, and the ratios of the pairs, sorted.
type comparison struct {
	unit        string
	before, now float64
	ratios      []float64 // none if the earlier tree does not have the figure
}

// comparePairs returns the figures that the later tree has.
func comparePairs(pairs [][2]figures) []comparison {
	var all []comparison
	for _, unit := range units {
		c := comparison{unit: unit}
		var was, is []float64
		for _, p := range pairs {
			v, ok := p[now][unit]
			if !ok {
				continue
			}
			is = append(is, v)
			if w, ok := p[before][unit]; ok {
				was = append(was, w)
				if w > 0 {
					c.ratios = append(c.ratios, v/w)
				}
			}
		}
		if len(is) == 0 {
			continue
		}
		slices.Sort(c.ratios)
		c.before, c.now = median(was), median(is)
		if unit == allocations && len(was) > 0 && len(c.ratios) == 0 { // none before
			c.ratios = []float64{1 + c.now}
		}
		all = append(all, c)
	}
	return all
}

// isWorse reports whether the figure has become worse, whatever the noise.
func (c comparison) isWorse() bool {
	if c.unit == allocations {
		return len(c.ratios) > 0 && c.now >= c.before+1 // parts of one are the runtime's own
	}
	return quantile(c.ratios, 0.25) > 1.1
}

func (c comparison) tableRow(name string) string {
	if len(c.ratios) == 0 {
		return fmt.Sprintf("| %s | | %.4g %s | | | new |", name, c.now, c.unit)
	}
	verdict := ""
	if c.isWorse() {
		verdict = "**worse**"
	}
	return strings.TrimRight(fmt.Sprintf("| %s | %.4g | %.4g %s | %.2f | %.2f to %.2f | %s |", name, c.before, c.now, c.unit,
		median(c.ratios), quantile(c.ratios, 0.25), quantile(c.ratios, 0.75), verdict), " ")
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return quantile(v, 0.5)
}

// quantile returns a value of a sorted slice, and 0 if it is empty.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 == len(v) {
		return v[i]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}
