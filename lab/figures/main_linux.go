// Figures measures the figures in the first table of docs/figures.md. Each figure is the median
// ratio of interleaved rounds. "missed" in the table means that the aim was not reached in this run
// on this machine. If an aim is usually missed, docs/latency.md explains why.
//
//	go run ./lab/figures echo     # 64 B echo between actors, one CPU, against net.Conn
//	go run ./lab/figures spin     # the same, busy polling, against spinning read and write
//	go run ./lab/figures oneway   # one-way 64 B messages, against one write per message
//	go run ./lab/figures bulk     # 1 MiB Sends and Writes at verbs level, against TCP
//	go run ./lab/figures large    # messages of up to 1 MiB between actors, against TCP
//	go run ./lab/figures files    # a file of 1 GiB through slots, against sendfile(2)
//	go run ./lab/figures connect  # one connection, against dial, accept and a round trip
//	go run ./lab/figures rate     # connections per second
//	go run ./lab/figures loops    # several loops against one; -loops N says how many
//	go run ./lab/figures http     # net/http over rdmanet, against net/http over TCP
//	go run ./lab/figures storm    # 10,000 connections at once, 1 % of the peers hostile
//	go run ./lab/figures idle     # 15,000 idle connections in one process pair
//	go run ./lab/figures all      # every one, and the table
//
// -quick runs one very short round, which shows that everything works. With -cpuprofile P each
// measured process writes the CPU profile of the last round to P.<figure>.<contestant>.<side>, for
// go tool pprof. -rounds sets the number of rounds, and -t the time of each measurement.
//
// On a shared machine, root can keep other programs from running during a measurement (see
// autogroups in sched(7); nice alone is not enough):
//
//	setsid -w sh -c 'echo -20 >/proc/self/autogroup; exec go run ./lab/figures echo'
//
// Every measured process has two Ps (GOMAXPROCS), as a Go program in a container that is limited to
// one CPU. A process that is bound to one CPU would get only one P. Go's monitor thread would then
// take the P from a thread in epoll_wait and return it, for each message. -procs 1 shows the
// effect.
//
// The in-process figures are Go benchmarks: see docs/figures.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/lab/measure"
)

func main() {
	child, err := measure.RunRole(allScenarios(0))
	if !child {
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
		err = measureAll(ctx, os.Args[1:])
		stop()
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// figureName returns the name of a scenario on the command line.
func figureName(s measure.Scenario) string {
	name, _, _ := strings.Cut(s.Name, "-")
	return name
}

func measureAll(ctx context.Context, args []string) error {
	var set measure.Settings
	f := flag.NewFlagSet("figures", flag.ContinueOnError)
	set.Flags(f, 7)
	loops := f.Int("loops", 2, "loops of the figure loops")
	f.Usage = func() {
		var names []string
		for _, s := range allScenarios(0) {
			names = append(names, figureName(s))
		}
		fmt.Fprintf(f.Output(), "usage: figures [flags] %s|all\n", strings.Join(slices.Compact(names), "|"))
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(allScenarios(*loops), func(s measure.Scenario) bool {
		return f.Arg(0) != "all" && f.Arg(0) != figureName(s)
	})
	if f.NArg() != 1 || len(chosen) == 0 {
		f.Usage()
		return flag.ErrHelp
	}
	doc := measure.NewDocument(set, "github.com/asynkron/protoactor-go", "golang.org/x/sys")
	return doc.Measure(ctx, chosen, os.Stdout)
}
