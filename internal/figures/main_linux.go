// Figures measures what docs/figures.md's first table says, each figure as a ratio of interleaved runs. MISSED in its table means that the aim
// was not reached in this run, on this machine; docs/design.md ("Latency and CPU") says why where that is usual.
//
//	go run ./internal/figures echo      # 64 B echo between actors in two processes on one CPU, against net.Conn
//	go run ./internal/figures spin      # the same, busy polling on a CPU each, against a program that spins on read and write
//	go run ./internal/figures oneway    # one-way 64 B messages, against one write per message
//	go run ./internal/figures bulk      # 1 MiB Sends and Writes at verbs level, without and with CRC, against TCP
//	go run ./internal/figures large     # messages of up to 1 MiB between actors, against TCP
//	go run ./internal/figures connect   # one connection established on both sides, against dial, accept and a round trip
//	go run ./internal/figures rate      # connections per second
//	go run ./internal/figures loops     # several loops against one: messages and connections per second; -loops N says how many
//	go run ./internal/figures http      # net/http over rdmanet, against net/http over TCP
//	go run ./internal/figures storm     # 10,000 connections at once, 1 % of the peers hostile
//	go run ./internal/figures idle      # 15,000 idle connections in one process pair
//	go run ./internal/figures all       # every one, and the table
//
// With -cpuprofile P each measured process leaves its CPU profile in P.<role>, of the last run; go tool pprof reads it.
//
// On a machine that others use too, root can keep them out of the measured moments (sched(7), autogroups; nice alone is not enough):
//
//	setsid -w sh -c 'echo -20 >/proc/self/autogroup; exec go run ./internal/figures echo'
//
// Every process, ours and theirs, has two Ps (GOMAXPROCS), as Go gives a container that is limited to one CPU. A process that is bound
// to one would get one P, and Go's monitor would take it from a thread in epoll_wait, and hand it back, around each message: -procs 1
// shows it.
//
// The in-process figures are Go benchmarks: see docs/figures.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// figure is one subcommand.
type figure struct {
	name string
	run  func() ([]row, error)
}

// figures are in the order of all: those that need most ports first, and the one that leaves them in TIME_WAIT last.
var figures = []figure{
	{"idle", idle},
	{"storm", storm},
	{"echo", echo},
	{"spin", spin},
	{"oneway", oneWay},
	{"bulk", bulk},
	{"large", large},
	{"connect", connect},
	{"rate", rate},
	{"loops", loops},
	{"http", httpFigure},
}

// row is one line of the table.
type row struct {
	what, bar, result string
	missed            bool
}

// atMost and atLeast are rows whose result is a ratio with a bar.
func atMost(what string, bar, got float64) row {
	return row{what, fmt.Sprintf("<= %.2f", bar), fmt.Sprintf("%.2f", got), got > bar}
}

func atLeast(what string, bar, got float64) row {
	return row{what, fmt.Sprintf(">= %.2f", bar), fmt.Sprintf("%.2f", got), got < bar}
}

func main() {
	var err error
	if role := os.Getenv(roleVariable); role != "" {
		err = runRole(role, os.Args[1:])
	} else {
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run() error {
	flag.StringVar(&profile, "cpuprofile", "", "leave the CPU profile of each measured process in `P`.<role>")
	flag.IntVar(&loopCount, "loops", 2, "loops of the figure loops")
	flag.IntVar(&procs, "procs", 2, "GOMAXPROCS of every measured process")
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: figures [-cpuprofile P] [-procs N] [-loops N] %s|all\n", strings.Join(names, "|"))
		flag.PrintDefaults()
	}
	flag.Parse()
	chosen := figures
	if name := flag.Arg(0); name != "all" {
		i := slices.Index(names, name)
		if i < 0 || flag.NArg() != 1 {
			flag.Usage()
			os.Exit(2)
		}
		chosen = figures[i : i+1]
	}
	var table []row
	var errs []error
	for _, f := range chosen {
		rows, err := f.run()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
			rows = []row{{f.name, "", "failed", true}}
		}
		table = append(table, rows...)
		fmt.Println()
	}
	printTable(table)
	return errors.Join(errs...)
}

func printTable(table []row) {
	fmt.Printf("%-72s %-10s %s\n", "what", "bar", "result")
	for _, r := range table {
		missed := ""
		if r.missed {
			missed = "  MISSED"
		}
		fmt.Printf("%-72s %-10s %s%s\n", r.what, r.bar, r.result, missed)
	}
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
