package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// scenario is one comparison.
type scenario struct {
	name    string // for -only
	title   string
	note    string // what is compared, and how fairly
	on      cpus
	entries []entry
	columns []string // the metrics of its table
	base    string   // the entry that ratios are to; "": none
	bars    []bar
	atLeast time.Duration // of a measurement; 0: what -t says
	once    bool          // one round is enough: what is measured does not depend on the others
	serve   func(e entry) (service, error)
	dial    func(addr string, e entry) (client, error)
}

// cpus are those of a pair's server and client; -1: any.
type cpus struct{ server, client int }

var (
	sameCPU = cpus{0, 0}
	ownCPU  = cpus{0, 1}
	anyCPU  = cpus{-1, -1}
)

func (c cpus) String() string {
	switch c {
	case sameCPU:
		return "both processes on one CPU"
	case anyCPU:
		return "not pinned"
	}
	return "one CPU for each process"
}

// bar is something that has to be reached.
type bar struct {
	what        string
	metric      string
	entry, base string // ratio of the entry's metric to the base's; without a base it is the metric itself
	most, least float64
	ofItself    string  // another metric of the same entry instead of the base's
	slack       float64 // what is let pass
}

func find(name, entryName string) (scenario, entry, error) {
	for _, s := range scenarios {
		if s.name != name {
			continue
		}
		for _, e := range s.entries {
			if e.name() == entryName {
				return s, e, nil
			}
		}
	}
	return scenario{}, entry{}, fmt.Errorf("no %q in %q", entryName, name)
}

// result is a scenario's, with every round's metrics of each entry.
type result struct {
	Name     string      `json:"name"`
	Title    string      `json:"title"`
	Note     string      `json:"note"`
	CPUs     string      `json:"cpus"`
	Base     string      `json:"ratios_to,omitempty"`
	Columns  []string    `json:"columns"`
	Entries  []measured  `json:"entries"`
	Bars     []barResult `json:"bars"`
	Failures []string    `json:"failures,omitempty"`
}

// measured is one entry's rounds.
type measured struct {
	Name   string    `json:"name"`
	Ours   bool      `json:"ours"`
	Rounds []metrics `json:"rounds"`
}

// barResult is a bar and whether it was reached.
type barResult struct {
	What  string  `json:"what"`
	Bar   string  `json:"bar"`
	Got   float64 `json:"got"`
	Least float64 `json:"round_min"`
	Most  float64 `json:"round_max"`
	Pass  bool    `json:"pass"`
}

// measure runs the scenario's entries in turn, round by round. An entry that fails does not keep the others from running.
func measure(s scenario, set settings) (result, error) {
	res := result{Name: s.name, Title: s.title, Note: s.note, CPUs: s.on.String(), Base: s.base, Columns: s.columns}
	for _, e := range s.entries {
		res.Entries = append(res.Entries, measured{Name: e.name(), Ours: e.ours()})
	}
	rounds := set.rounds
	if s.once {
		rounds = 1
	}
	for round := range rounds {
		for i, e := range s.entries {
			fmt.Fprintf(os.Stderr, "\r\033[K%s: round %d of %d, %s", s.name, round+1, rounds, e.name())
			m, err := pair(s, e, set)
			if err != nil {
				res.Failures = append(res.Failures, fmt.Sprintf("%s, round %d: %v", e.name(), round+1, err))
				continue
			}
			res.Entries[i].Rounds = append(res.Entries[i].Rounds, m)
		}
	}
	fmt.Fprint(os.Stderr, "\r\033[K")
	for _, b := range s.bars {
		if r, ok := res.judge(b); ok {
			res.Bars = append(res.Bars, r)
		}
	}
	if len(res.Failures) > 0 {
		return res, fmt.Errorf("%s", strings.Join(res.Failures, "; "))
	}
	return res, nil
}

func (r *result) entry(name string) *measured {
	i := slices.IndexFunc(r.Entries, func(m measured) bool { return m.Name == name })
	if i < 0 || len(r.Entries[i].Rounds) == 0 {
		return nil
	}
	return &r.Entries[i]
}

// median of a metric's rounds.
func (m *measured) median(metric string) float64 {
	var v []float64
	for _, x := range m.Rounds {
		v = append(v, x[metric])
	}
	slices.Sort(v)
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ratio is that of the medians, and between which those of the rounds are.
func ratio(a *measured, am string, b *measured, bm string) (of, least, most float64) {
	of = a.median(am) / b.median(bm)
	least, most = of, of
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		x := a.Rounds[i][am] / b.Rounds[i][bm]
		least, most = min(least, x), max(most, x)
	}
	return of, least, most
}

// judge says whether a bar was reached. ok is false when what it needs was not measured.
func (r *result) judge(b bar) (res barResult, ok bool) {
	e := r.entry(b.entry)
	if e == nil {
		return res, false
	}
	res.What = b.what
	switch {
	case b.ofItself != "":
		res.Got, res.Least, res.Most = ratio(e, b.metric, e, b.ofItself)
	case b.base != "":
		to := r.entry(b.base)
		if to == nil {
			return res, false
		}
		res.Got, res.Least, res.Most = ratio(e, b.metric, to, b.metric)
	default:
		res.Got = e.median(b.metric)
		res.Least, res.Most = res.Got, res.Got
		for _, x := range e.Rounds {
			res.Least, res.Most = min(res.Least, x[b.metric]), max(res.Most, x[b.metric])
		}
	}
	if b.most > 0 {
		res.Bar, res.Pass = fmt.Sprintf("<= %g", b.most), res.Got <= b.most+b.slack
	} else {
		res.Bar, res.Pass = fmt.Sprintf(">= %g", b.least), res.Got >= b.least
	}
	return res, true
}
