// Incidents plays incidents for operators: a server and its clients over the embedded device, in
// one process, with the server's live page. Trouble and calm alternate until Ctrl-C. See
// docs/incidents.md for the symptoms, their meaning, and the remedies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/lab/live"
)

func main() { cli.Main("incidents", run) }

// settings are the values of the flags.
type settings struct {
	name          string
	inspect       string
	lasts         time.Duration
	trouble, calm time.Duration
	begun         func(*stage) // set by tests
}

func printUsage(w io.Writer) {
	fmt.Fprint(w, `incidents NAME [flags]: trouble and calm in turns, with a live page, until Ctrl-C

`)
	for _, name := range slices.Sorted(maps.Keys(incidents)) {
		fmt.Fprintf(w, "  %-13s %s\n", name, incidents[name].about)
	}
	fmt.Fprint(w, "\nFlags:\n")
}

func parseFlags(args []string, out io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("incidents", flag.ContinueOnError)
	f.SetOutput(io.Discard) // main prints errors, once
	f.StringVar(&s.inspect, "inspect", "127.0.0.1:0", live.Usage)
	f.DurationVar(&s.lasts, "for", 0, "end after this `DURATION`; 0: at Ctrl-C")
	f.DurationVar(&s.trouble, "trouble", 20*time.Second, "`DURATION` of each trouble")
	f.DurationVar(&s.calm, "calm", 10*time.Second, "`DURATION` of the calm after it")
	for len(args) > 0 {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			printUsage(out)
			f.SetOutput(out)
			f.PrintDefaults()
			return s, err
		} else if err != nil {
			return s, fmt.Errorf("%w; see incidents --help", err)
		}
		if args = f.Args(); len(args) > 0 {
			if s.name != "" {
				return s, fmt.Errorf("unexpected %q; see incidents --help", args[0])
			}
			s.name, args = args[0], args[1:]
		}
	}
	if _, known := incidents[s.name]; !known {
		return s, fmt.Errorf("which incident? want one of %s", strings.Join(slices.Sorted(maps.Keys(incidents)), ", "))
	}
	if s.lasts < 0 || s.trouble <= 0 || s.calm <= 0 {
		return s, errors.New("--trouble and --calm must be greater than 0, and --for not negative")
	}
	return s, nil
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	set, err := parseFlags(args, out)
	if err != nil {
		return err
	}
	return set.runIncident(ctx, out, log)
}

func (set settings) runIncident(ctx context.Context, out, log io.Writer) (err error) {
	if set.lasts > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.lasts)
		defer cancel()
	}
	what := incidents[set.name]
	s, err := newStage(ctx, what, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	page, err := live.Serve(set.inspect, s.server, s.device, s.level, s.pageSections()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.Close()) }()
	if set.begun != nil {
		set.begun(s)
	}
	fmt.Fprintf(out, "-- %s: %s\n-- look at %s\n-- the live page is at %s\n", set.name, what.about, what.look, page.URL)
	return s.playIncident(what, set, out)
}

// playIncident alternates between trouble and calm until the end.
func (s *stage) playIncident(what incident, set settings, out io.Writer) error {
	if err := s.awaitConnected(what); err != nil {
		return err
	}
	for s.ctx.Err() == nil {
		fmt.Fprintf(out, "-- for %v: %s\n", set.trouble, what.trouble)
		s.trouble.Store(true)
		if what.begin != nil {
			what.begin(s)
		}
		s.pause(set.trouble)
		s.trouble.Store(false)
		if s.ctx.Err() == nil {
			fmt.Fprintf(out, "-- for %v: %s\n", set.calm, what.calm)
			s.pause(set.calm)
		}
	}
	return nil
}

func (s *stage) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}
