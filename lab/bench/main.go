// Bench compares rdmactor with other ways to send bytes from a Go program, on this machine, over
// loopback. Of rdmactor it measures the raw verbs level, actors, calls (package rpc) and net.Conn
// (package rdmanet); of others net.Conn, net/rpc, grpc-go and Proto.Actor's remote. README.md
// describes the method, and why it is fair.
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
	"path/filepath"
	"slices"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

var allScenarios = slices.Concat(scenarios, remoteScenarios, secureScenarios)

func main() { measure.Main("bench", allScenarios, run) }

// compared are the modules whose versions are reported.
var compared = []string{
	"google.golang.org/grpc", "github.com/asynkron/protoactor-go", "google.golang.org/protobuf", "golang.org/x/sys",
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
	name, mode, all := "bench", "", scenarios
	switch {
	case *remote && *secure:
		return errors.New("-remote and -secure are two runs")
	case *remote:
		name, mode, all = "bench-remote", "-remote ", remoteScenarios
	case *secure:
		name, mode, all = "bench-secure", "-secure ", secureScenarios
	}
	chosen, err := measure.Choose(all, *only, *contestant)
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
	header := "<!-- written by `go run ./lab/bench " + mode + "-o lab/bench/results` -->\n\n"
	return errors.Join(err, doc.Leave(*dir, name, header), drawChart(doc, filepath.Join(*dir, name+".svg")))
}
