package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// childLife bounds the lifetime of a pair of processes.
const childLife = 10 * time.Minute

// Measure runs the scenarios one after the other. It prints the table of each scenario after
// measuring it, and all bars at the end. If an entry fails, the others run nevertheless. When ctx
// is done, Measure returns early.
func (d *Document) Measure(ctx context.Context, scenarios []Scenario, out io.Writer) error {
	fmt.Fprint(out, d.Head())
	var errs []error
	for _, s := range scenarios {
		r := d.measureScenario(ctx, s)
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if len(r.Failures) > 0 {
			errs = append(errs, fmt.Errorf("%s: %s", s.Name, strings.Join(r.Failures, "; ")))
		}
		d.Scenarios = append(d.Scenarios, r)
		fmt.Fprint(out, r.Markdown())
	}
	fmt.Fprint(out, d.Verdicts())
	return errors.Join(errs...)
}

// measureScenario runs the scenario's entries in turn, round by round.
func (set Settings) measureScenario(ctx context.Context, s Scenario) Result {
	if s.Once {
		set.Rounds = 1
	}
	if set.Unpinned {
		s.On = AnyCPU
	}
	res := newResult(s)
	for round := range set.Rounds {
		for i, e := range s.Entries {
			if ctx.Err() != nil {
				return res
			}
			fmt.Fprintf(os.Stderr, "\r\033[K%s: round %d of %d, %s", s.Name, round+1, set.Rounds, e.Name())
			e.Quick = set.Quick
			m, err := set.measureEntry(ctx, s, e)
			if err != nil {
				res.Failures = append(res.Failures, fmt.Sprintf("%s, round %d: %v", e.Name(), round+1, err))
				continue
			}
			res.Entries[i].Rounds = append(res.Entries[i].Rounds, m)
		}
	}
	fmt.Fprint(os.Stderr, "\r\033[K")
	for _, b := range s.Bars {
		if v, ok := res.judgeBar(b); ok {
			res.Bars = append(res.Bars, v)
		}
	}
	return res
}

// measureEntry measures an entry once, in two processes.
func (set Settings) measureEntry(ctx context.Context, s Scenario, e Entry) (m Metrics, err error) {
	ctx, cancel := context.WithTimeout(ctx, childLife)
	defer cancel()
	server, client := role{Server: true, Scenario: s.Name, Entry: e}, role{Scenario: s.Name, Entry: e, Run: set.Run}
	if set.Profile != "" {
		base := set.Profile + "." + strings.NewReplacer(" ", "-", "/", "-").Replace(s.Name+"."+e.Name()) + "."
		server.Profile, client.Profile = base+"server", base+"client"
	}
	procs := max(set.Procs, e.Loops)
	sc, err := Start(ctx, "the server", s.On.Server, procs, server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sc.Stop()) }()
	if err := sc.Ask("", &client.Addr); err != nil {
		return nil, err
	}
	cc, err := Start(ctx, "the client", s.On.Client, procs, client)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cc.Stop()) }()
	var ready string
	var before, after usage
	var rep report
	for _, q := range []struct {
		child *Child
		say   string
		v     any
	}{{cc, "", &ready}, {sc, "usage", &before}, {cc, "go", &rep}, {sc, "usage", &after}} {
		if err := q.child.Ask(q.say, q.v); err != nil {
			return nil, err
		}
	}
	return rep.newMetrics(after.since(before)), nil
}
