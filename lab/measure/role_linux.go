package measure

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
)

// warmUp is the longest time that a client runs before it is measured.
const warmUp = 300 * time.Millisecond

// role is the server, client or joiner that a child runs.
type role struct {
	Server   bool // or joiner, if it has the server's address
	Scenario string
	Entry    Entry
	Addr     string // of the server
	Run      time.Duration
	Profile  string // file; "": none
}

// RunRole reports whether this process is a child. If it is, RunRole first does the child's work.
func RunRole(all []Scenario) (child bool, err error) {
	var r role
	if child, err = Role(&r); !child || err != nil {
		return child, err
	}
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == r.Scenario })
	if i < 0 {
		return true, fmt.Errorf("no scenario %q", r.Scenario)
	}
	if r.Profile != "" {
		stop, failed := stats.Profile(r.Profile)
		if failed != nil {
			return true, failed
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if r.Server {
		return true, r.runServer(all[i])
	}
	return true, r.runClient(all[i])
}

// runServer runs the server, sends its address, and sends its usage whenever the parent asks.
func (r role) runServer(s Scenario) error {
	serve := s.Serve
	if r.Addr != "" {
		serve = func(e Entry) (Service, error) { return s.Join(r.Addr, e) }
	}
	svc, err := serve(r.Entry)
	if err != nil {
		return err
	}
	if err := Report(svc.Addr); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		u := currentUsage()
		if svc.Report != nil {
			u.More = svc.Report()
		}
		if err := Report(u); err != nil {
			return err
		}
	}
	return svc.Close()
}

// runClient warms up, sends a word, waits until the parent asks, and measures.
func (r role) runClient(s Scenario) error {
	c, err := s.Dial(r.Addr, r.Entry)
	if err != nil {
		return err
	}
	return errors.Join(r.warmUpAndRun(s, c), c.Close())
}

func (r role) warmUpAndRun(s Scenario, c Client) error {
	if !s.Cold {
		if _, err := c.Run(min(r.Run, warmUp)); err != nil {
			return err
		}
	}
	if err := Report("ready"); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		return in.Err()
	}
	before := currentUsage()
	smp, err := c.Run(r.Run)
	if err != nil {
		return err
	}
	after := currentUsage()
	if err := Report(report{smp, after.since(before)}); err != nil {
		return err
	}
	in.Scan() // the parent asks for the server's usage first
	return nil
}

// StartJoiner is for clients of a scenario with Join. It runs Join in another process, with the
// server's address, and returns the address of its Service.
func StartJoiner(scenario string, e Entry, addr string) (c *Child, at string, err error) {
	c, err = Start(context.Background(), "the joiner", -1, 2, role{Server: true, Scenario: scenario, Entry: e, Addr: addr})
	if err != nil {
		return nil, "", err
	}
	if err := c.Ask("", &at); err != nil {
		return nil, "", errors.Join(err, c.Stop())
	}
	return c, at, nil
}

// Main is the main function of a program that measures. It does a child's work in a child, and
// otherwise calls run with the program's arguments. name is the program's in errors.
func Main(name string, all []Scenario, run func(ctx context.Context, args []string) error) {
	child, err := RunRole(all)
	if !child {
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
		err = run(ctx, os.Args[1:])
		stop()
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
