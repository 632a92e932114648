// Bench compares rdmactor with other ways to send bytes from a Go program, on this machine, over
// loopback. Of rdmactor it measures the raw verbs level, actors, calls (package rpc) and net.Conn
// (package rdmanet); of others net.Conn, net/rpc, grpc-go, Proto.Actor's remote and
// cloudwego/netpoll. README.md describes the method, and why it is fair.
//
//	go run ./lab/bench                     # everything, some seven minutes; -o sets the directory of its files
//	go run ./lab/bench -only echo,calls    # some scenarios
//	go run ./lab/bench -remote             # typed remote actors, those of package remoting and Proto.Actor's
//	go run ./lab/bench -secure             # secured connections, against those that are not
//	go run ./lab/bench -quick              # every contestant and every scenario very briefly: do they run?
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

func main() {
	child, err := runChild()
	if !child {
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
		err = run(ctx, os.Args[1:])
		stop()
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runChild reports whether this process is a child. If it is, runChild first does its work.
func runChild() (child bool, err error) {
	if child, err = runVictim(); child || err != nil {
		return child, err
	}
	return measure.RunRole(slices.Concat(scenarios, remoteScenarios, grainScenarios, secureScenarios))
}

// compared are the modules whose versions are reported.
var compared = []string{
	"google.golang.org/grpc", "github.com/asynkron/protoactor-go", "github.com/cloudwego/netpoll", "google.golang.org/protobuf",
	"golang.org/x/sys",
}

// comparison is the content of one run.
type comparison struct {
	name      string // of its files
	flag      string // that selects it, and a blank
	scenarios []measure.Scenario
}

func (c comparison) fileHeader() string {
	return "<!-- written by `go run ./lab/bench " + c.flag + "-o lab/bench/results` -->\n\n"
}

func run(ctx context.Context, args []string) error {
	var set measure.Settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.Flags(f, 5)
	remote := f.Bool("remote", false, "compare typed remote actors instead, in bench-remote.json, .md and .svg")
	secure := f.Bool("secure", false, "compare secured connections instead, in bench-secure.json, .md and .svg")
	only := f.String("only", "", "`SCENARIOS` to run, such as echo,calls (default: all)")
	contestant := f.String("contestants", "", "run `THESE` only, such as rpc,grpc-go (default: all)")
	dir := f.String("o", ".", "`DIR`ectory for bench.json, bench.md and bench.svg")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected %q", f.Arg(0))
	}
	c := comparison{"bench", "", scenarios}
	switch {
	case *remote && *secure:
		return errors.New("-remote and -secure are two runs")
	case *remote:
		c = comparison{"bench-remote", "-remote ", slices.Concat(remoteScenarios, grainScenarios)}
	case *secure:
		c = comparison{"bench-secure", "-secure ", secureScenarios}
	}
	var names []string
	for _, s := range c.scenarios {
		names = append(names, s.Name)
	}
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	chosen, err := measure.Choose(c.scenarios, names, *contestant)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	doc := measure.NewDocument(set, compared...)
	if *secure {
		if err := contest.MakeKeys(); err != nil {
			return err
		}
		doc.Security = "secured as the names indicate"
	}
	err = doc.Measure(ctx, chosen, os.Stdout)
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, doc.Leave(*dir, c.name, c.fileHeader()), drawChart(doc, filepath.Join(*dir, c.name+".svg")))
}
