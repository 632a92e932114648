package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// printTables prints the figures in Markdown.
func printTables(w io.Writer, pairs []*pair, growths []growth) {
	fmt.Fprintf(w, "\n| pair | fault | times | longest | everything goes on after: median | worst |\n|---|---|---|---|---|---|\n")
	for _, p := range pairs {
		for k, name := range kindNames {
			var after, took []float64
			for _, r := range p.recoveries {
				if r.Kind == kind(k) {
					after, took = append(after, r.After.Seconds()), append(took, r.For.Seconds())
				}
			}
			if len(after) > 0 {
				fmt.Fprintf(w, "| %s | %s | %d | %.1f s | %.1f s | %.1f s |\n",
					p.Name, name, len(after), slices.Max(took), median(after), slices.Max(after))
			}
		}
	}
	fmt.Fprintf(w, "\n| work done |")
	for _, p := range pairs {
		fmt.Fprintf(w, " %s |", p.Name)
	}
	fmt.Fprintf(w, "\n|---|%s\n", manyColumns(len(pairs)))
	for _, k := range kindsOfWork {
		fmt.Fprintf(w, "| %s |", k)
		for _, p := range pairs {
			fmt.Fprintf(w, " %d |", p.done[k])
		}
		fmt.Fprintln(w)
	}
	printGrowths(w, growths)
	for _, p := range pairs {
		for s, errs := range p.errors {
			fmt.Fprintf(w, "\nErrors of the %v of %q:\n\n", side(s), p.Name)
			for _, name := range slices.Sorted(maps.Keys(errs)) {
				fmt.Fprintf(w, "- %d %s\n", errs[name], name)
			}
		}
	}
}

// printGrowths prints the medians of each process and metric while there were no faults, and over
// the whole time.
func printGrowths(w io.Writer, all []growth) {
	if len(all) > 0 {
		fmt.Fprintf(w, "\n| process, pair | what | calm: first third | last third | always: first third | last third | highest | verdict |\n%s\n",
			"|---|---|---|---|---|---|---|---|")
	}
	for i := range all {
		calm := &all[i]
		if !calm.Calm {
			continue
		}
		always := &all[slices.IndexFunc(all, func(g growth) bool {
			return !g.Calm && g.Pair == calm.Pair && g.Side == calm.Side && g.Metric == calm.Metric
		})]
		fmt.Fprintf(w, "| %v, %s | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %s |\n", calm.Side, calm.Pair, calm.Metric.label(),
			calm.First, calm.Last, always.First, always.Last, always.Worst, choose(calm.isGrown() || always.isGrown(), "GROWS", "no growth"))
	}
}

func manyColumns(n int) (s string) {
	for range n {
		s += "---|"
	}
	return s
}
