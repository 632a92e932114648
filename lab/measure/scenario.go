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
type Service interface {
	Addr() string
	Close() error
}

// NewService makes a Service with the address addr. Its Close calls end.
func NewService(addr string, end func() error) Service { return service{addr, end} }

type service struct {
	addr string
	end  func() error
}

func (s service) Addr() string { return s.addr }
func (s service) Close() error { return s.end() }

// Reporter is a Service with additional metrics.
type Reporter interface {
	// Report is called before the measurement and after it. Only the second result counts.
	Report() Metrics
}

// Client is a connected client. Only one goroutine may call its methods.
type Client interface {
	// Run measures for the time d.
	Run(d time.Duration) (Sample, error)
	Close() error
}

// NewClient makes a Client whose Run is run and whose Close is end.
func NewClient(run func(d time.Duration) (Sample, error), end func() error) Client {
	return client{run, end}
}

type client struct {
	run func(d time.Duration) (Sample, error)
	end func() error
}

func (c client) Run(d time.Duration) (Sample, error) { return c.run(d) }
func (c client) Close() error                        { return c.end() }

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

// Bar is an aim for a metric. A bar without Most and Least is only published.
type Bar struct {
	What        string
	Metric      string
	Entry, Base string // their ratio is judged; without Base the metric itself
	Most, Least float64
	Plus        string  // an entry whose metric is added to the base's
	OfItself    string  // the base is this metric of the same entry
	Slack       float64 // how far above Most still passes
}

// With is b, with another entry's metric added to the base's.
func (b Bar) With(entry string) Bar {
	b.Plus = entry
	return b
}

// Published returns a bar without an aim, for a metric of an entry or its ratio to that of a base.
func Published(what, metric, entry string, base ...string) Bar {
	return Bar{What: what, Metric: metric, Entry: entry, Base: strings.Join(base, "")}
}

// AtMost returns a bar that a value of at most most reaches.
func AtMost(most float64, what, metric, entry string, base ...string) Bar {
	b := Published(what, metric, entry, base...)
	b.Most = most
	return b
}

// AtLeast returns a bar that a value of at least least reaches.
func AtLeast(least float64, what, metric, entry string, base ...string) Bar {
	b := Published(what, metric, entry, base...)
	b.Least = least
	return b
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
	c, err := s.Dial(svc.Addr(), e)
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
	if r, ok := svc.(Reporter); ok {
		r.Report()
	}
	return errors.Join(err, svc.Close())
}

// Choose returns the scenarios with those names, with only the contestants in the list. An empty
// list means all contestants.
func Choose(all []Scenario, names []string, contestants string) (chosen []Scenario, err error) {
	wanted := strings.Split(contestants, ",")
	for _, name := range names {
		i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q", name)
		}
		s := all[i]
		if contestants != "" {
			s.Entries = slices.DeleteFunc(slices.Clone(s.Entries), func(e Entry) bool { return !slices.Contains(wanted, e.Contestant) })
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}
