package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Entry is a contestant in a scenario.
type Entry struct {
	Contestant string
	Ours       bool               // it is a contestant of this project
	Wait       eventloop.WaitMode // only if Ours; all others block
	CRC        bool               // ours only
	Loops      int                // ours only; 0: one
	Secured    string             // ours only: PSK or TLS; "": connections are not secured
	Quick      bool               // a quick run: small numbers are enough
}

// Name returns the entry's name in tables, such as "rpc" or "rpc busy".
func (e Entry) Name() string {
	name := e.Contestant
	switch e.Wait {
	case eventloop.Busy:
		name += " busy"
	case eventloop.Spin:
		name += " spin"
	}
	if e.Secured != "" {
		name += " " + e.Secured
	}
	if e.CRC {
		name += " CRC"
	}
	if e.Loops > 0 {
		name += fmt.Sprintf(" loops=%d", e.Loops)
	}
	return name
}

// Service is a running server.
type Service struct {
	Addr  string
	Close func() error
	// Report returns additional metrics. It is called before the measurement and after it, and only
	// the second result counts. nil: there are none.
	Report func() Metrics
}

// Client is a connected client. Only one goroutine may call its functions.
type Client struct {
	Run   func(d time.Duration) (Sample, error) // measures for the time d
	Close func() error
}

// Scenario is one comparison.
type Scenario struct {
	Name    string // name on the command line
	Title   string
	Note    string // describes the comparison and its fairness
	On      CPUs
	Entries []Entry
	Columns []string // the metrics of its table
	Base    string   // the entry to which ratios are relative; "": none
	Bars    []Bar
	// Once means that one round is enough, because the result does not depend on other programs.
	Once   bool
	Cold   bool // clients do not warm up
	Paired bool // a ratio is the median of the rounds' ratios, not that of the medians
	Serve  func(e Entry) (Service, error)
	Dial   func(addr string, e Entry) (Client, error)
	Join   func(addr string, e Entry) (Service, error) // nil, or what StartJoiner starts
}

// CPUs are the CPUs of a pair's server and client. -1 means any.
type CPUs struct{ Server, Client int }

// The CPUs that scenarios use.
var (
	SameCPU = CPUs{0, 0}
	OwnCPU  = CPUs{0, 1}
	AnyCPU  = CPUs{-1, -1}
)

// String returns the text for tables.
func (c CPUs) String() string {
	switch c {
	case SameCPU:
		return "both processes on one CPU"
	case AnyCPU:
		return "not pinned"
	}
	return "one CPU for each process"
}

// Bar is an aim for a metric.
type Bar struct {
	What        string
	Metric      string
	Entry, Base string // their ratio is judged; without Base the metric itself
	Most, Least float64
	Plus        string  // an entry whose metric is added to the base's
	OfItself    string  // the base is this metric of the same entry
	Slack       float64 // how far above Most still passes
}

// Of returns the bar for each of the entries, whose names replace %s in What.
func (b Bar) Of(entries ...string) (bars []Bar) {
	for _, name := range entries {
		each := b
		each.What, each.Entry = fmt.Sprintf(b.What, name), name
		bars = append(bars, each)
	}
	return bars
}

// Check returns an error for mistakes in scenarios: duplicate names, and bars of entries that do
// not exist.
func Check(all []Scenario) error {
	var errs []error
	names := make(map[string]bool)
	for _, s := range all {
		if names[s.Name] {
			errs = append(errs, fmt.Errorf("two scenarios are called %s", s.Name))
		}
		names[s.Name] = true
		entries := []string{""}
		for _, e := range s.Entries {
			entries = append(entries, e.Name())
		}
		for _, b := range s.Bars {
			if b.Entry == "" || !slices.Contains(entries, b.Entry) || !slices.Contains(entries, b.Base) || !slices.Contains(entries, b.Plus) {
				errs = append(errs, fmt.Errorf("%s has no %q against %q and %q", s.Name, b.Entry, b.Base, b.Plus))
			}
		}
	}
	return errors.Join(errs...)
}

// Try is for tests. It runs an entry for a very short time in this process, once to warm up and
// once measured. The time may be too short to record times of calls.
func (s Scenario) Try(e Entry) error {
	e.Quick = true
	svc, err := s.Serve(e)
	if err != nil {
		return err
	}
	c, err := s.Dial(svc.Addr, e)
	if err != nil {
		return errors.Join(err, svc.Close())
	}
	runs := 2
	if s.Cold {
		runs = 1
	}
	for ; runs > 0 && err == nil; runs-- {
		const blink = 2 * time.Millisecond
		var smp Sample
		smp, err = c.Run(blink)
		if err == nil && (smp.Seconds <= 0 || smp.N < 1 && smp.More == nil || smp.Bytes%max(smp.N, 1) != 0) {
			err = fmt.Errorf("%+v is no sample", smp)
		}
	}
	err = errors.Join(err, c.Close())
	if svc.Report != nil {
		svc.Report()
	}
	return errors.Join(err, svc.Close())
}

// Choose returns the scenarios with the names in a list, with only the contestants in another list.
// Lists are separated by commas. An empty list means all.
func Choose(all []Scenario, names, contestants string) (chosen []Scenario, err error) {
	if names == "" {
		chosen = slices.Clone(all)
	}
	for name := range strings.FieldsFuncSeq(names, func(r rune) bool { return r == ',' }) {
		i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q", name)
		}
		chosen = append(chosen, all[i])
	}
	wanted := strings.Split(contestants, ",")
	for i := range chosen {
		chosen[i].Entries = slices.DeleteFunc(slices.Clone(chosen[i].Entries), func(e Entry) bool {
			return contestants != "" && !slices.Contains(wanted, e.Contestant)
		})
	}
	return chosen, nil
}
