// Bench compares rdmactor with what else a Go program could send bytes with, on this machine, over loopback: the raw verbs level, actors,
// calls (package rpc) and net.Conn (package rdmanet) of ours; net.Conn, net/rpc, grpc-go, Proto.Actor's remote and cloudwego/netpoll.
// README.md says how, and what is fair about it.
//
//	go run .                     # everything, some six minutes; leaves its files in the folder of -o
//	go run . -only echo,calls    # some scenarios
//	go run . -quick              # every contestant and every scenario for a blink: does it run?
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// settings are what the flags say.
type settings struct {
	rounds  int
	run     time.Duration // of each measurement
	quick   bool
	profile string // children leave their CPU profiles in <profile>.<scenario>.<contestant>.<side>; "": nowhere
}

func main() {
	var err error
	if role := os.Getenv(roleVariable); role != "" {
		err = runRole(role)
	} else {
		err = run(os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var set settings
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&set.rounds, "rounds", 5, "`NUMBER` of interleaved rounds; the median counts")
	f.DurationVar(&set.run, "t", time.Second, "how long each contestant is measured in each round")
	f.BoolVar(&set.quick, "quick", false, "one round of a blink: says that everything runs, and nothing about speed")
	f.StringVar(&set.profile, "cpuprofile", "",
		"leave the CPU profile of each measured process, of the last round, in `P`.<scenario>.<contestant>.<side>")
	only := f.String("only", strings.Join(names, ","), "`SCENARIOS` to run")
	contestant := f.String("contestants", "", "run `THESE` only, such as rpc,grpc-go (default: all)")
	dir := f.String("o", ".", "`DIR`ectory for bench.json, bench.md and bench.svg")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected %q", f.Arg(0))
	}
	if set.quick {
		set.rounds, set.run = 1, 30*time.Millisecond
	}
	chosen, err := choose(strings.Split(*only, ","), *contestant)
	if err != nil {
		return err
	}
	doc := newDocument(set)
	fmt.Print(doc.head())
	var errs []error
	for _, s := range chosen {
		res, err := measure(s, set)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
		doc.Scenarios = append(doc.Scenarios, res)
		fmt.Print(res.markdown())
	}
	fmt.Print(doc.verdicts())
	return errors.Join(append(errs, doc.leave(*dir))...)
}

// choose finds the scenarios of -only, with the contestants of -contestants.
func choose(names []string, contestants string) (chosen []scenario, err error) {
	for _, name := range names {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: no scenario %q", name)
		}
		s := scenarios[i]
		if contestants != "" {
			wanted := strings.Split(contestants, ",")
			s.entries = slices.DeleteFunc(slices.Clone(s.entries), func(e entry) bool { return !slices.Contains(wanted, e.contestant) })
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}
