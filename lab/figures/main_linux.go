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
	"flag"
	"fmt"
	"os"

	"github.com/rdmactor/rdmactor/lab/measure"
)

func main() { measure.Main("figures", allScenarios(0), measureAll) }

func measureAll(ctx context.Context, args []string) error {
	var set measure.Settings
	f := flag.NewFlagSet("figures", flag.ContinueOnError)
	set.Flags(f, 7)
	loops := f.Int("loops", 2, "loops of the figure loops")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: figures [flags] NAME|all")
		for _, s := range allScenarios(0) {
			fmt.Fprintf(f.Output(), "  %s: %s\n", s.Name, s.Title)
		}
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	name := f.Arg(0)
	if f.NArg() != 1 || name == "" {
		f.Usage()
		return flag.ErrHelp
	}
	if name == "all" {
		name = ""
	}
	chosen, err := measure.Choose(allScenarios(*loops), name, "")
	if err != nil {
		return err
	}
	doc := measure.NewDocument(set, "github.com/asynkron/protoactor-go", "golang.org/x/sys")
	return doc.Measure(ctx, chosen, os.Stdout)
}
