package measure

import (
	"fmt"
	"slices"
)

// Result is the result of a scenario: the metrics of each entry in every round.
type Result struct {
	Name     string     `json:"name"`
	Title    string     `json:"title"`
	Note     string     `json:"note"`
	CPUs     string     `json:"cpus"`
	Base     string     `json:"ratios_to,omitempty"`
	Columns  []string   `json:"columns"`
	Entries  []Measured `json:"entries"`
	Bars     []Verdict  `json:"bars"`
	Failures []string   `json:"failures,omitempty"`

	paired bool
}

// Measured has the rounds of one entry.
type Measured struct {
	Name   string    `json:"name"`
	Ours   bool      `json:"ours"`
	Rounds []Metrics `json:"rounds"`
}

// Verdict is a bar, and whether it was reached.
type Verdict struct {
	What  string  `json:"what"`
	Bar   string  `json:"bar"`
	Got   float64 `json:"got"`
	Least float64 `json:"round_min"`
	Most  float64 `json:"round_max"`
	Pass  bool    `json:"pass"`
}

func newResult(s Scenario) Result {
	r := Result{
		Name: s.Name, Title: s.Title, Note: s.Note, CPUs: s.On.String(), Base: s.Base, Columns: s.Columns, paired: s.Paired,
	}
	for _, e := range s.Entries {
		r.Entries = append(r.Entries, Measured{Name: e.Name(), Ours: e.Ours})
	}
	return r
}

// findEntry returns the entry of that name, or nil if it was not measured.
func (r *Result) findEntry(name string) *Measured {
	i := slices.IndexFunc(r.Entries, func(m Measured) bool { return m.Name == name })
	if i < 0 || len(r.Entries[i].Rounds) == 0 {
		return nil
	}
	return &r.Entries[i]
}

// Median returns the median of a metric over the rounds, or 0 without rounds.
func (m *Measured) Median(metric string) float64 {
	var v []float64
	for _, x := range m.Rounds {
		v = append(v, x[metric])
	}
	return median(v)
}

func median(v []float64) float64 {
	slices.Sort(v)
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// plusMetric returns m with another entry's metric added in each round, and without other metrics.
func (m *Measured) plusMetric(other *Measured, metric string) *Measured {
	sum := &Measured{}
	for i := range min(len(m.Rounds), len(other.Rounds)) {
		sum.Rounds = append(sum.Rounds, Metrics{metric: m.Rounds[i][metric] + other.Rounds[i][metric]})
	}
	return sum
}

// metricRatio returns the ratio of one metric to another, with its minimum and maximum over the
// rounds. Without a base it returns the metric itself.
func (r *Result) metricRatio(a *Measured, am string, b *Measured, bm string) (of, least, most float64) {
	rounds := len(a.Rounds)
	if b != nil {
		rounds = min(rounds, len(b.Rounds))
	}
	v := make([]float64, rounds)
	for i := range v {
		if v[i] = a.Rounds[i][am]; b != nil {
			v[i] /= b.Rounds[i][bm]
		}
	}
	least, most, of = slices.Min(v), slices.Max(v), median(v)
	if b != nil && !r.paired {
		of = a.Median(am) / b.Median(bm)
		least, most = min(least, of), max(most, of)
	}
	return of, least, most
}

// judgeBar reports whether a bar was reached. ok is false if the entries of the bar were not
// measured.
func (r *Result) judgeBar(b Bar) (v Verdict, ok bool) {
	e, to, metric := r.findEntry(b.Entry), r.findEntry(b.Base), b.Metric
	if b.OfItself != "" {
		to, metric = e, b.OfItself
	}
	if e == nil || to == nil && b.Base != "" {
		return v, false
	}
	if b.Plus != "" {
		plus := r.findEntry(b.Plus)
		if plus == nil {
			return v, false
		}
		to = to.plusMetric(plus, metric)
	}
	v = Verdict{What: b.What, Bar: fmt.Sprintf(">= %g", b.Least)}
	v.Got, v.Least, v.Most = r.metricRatio(e, b.Metric, to, metric)
	v.Pass = v.Got >= b.Least
	if b.Most > 0 {
		v.Bar, v.Pass = fmt.Sprintf("<= %g", b.Most), v.Got <= b.Most+b.Slack
	}
	return v, true
}
