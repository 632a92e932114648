package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var p Plan
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	f.IntVar(&p.N, "n", 40, "`NUMBER` of defects")
	f.Uint64Var(&p.Seed, "seed", 1, "`SEED` of the draw")
	f.BoolVar(&p.Own, "own", false, "run only the package's own tests")
	f.StringVar(&p.Sim, "sim", "", "instead of tests play the simulation with these `WORKLOADS`, such as calls,remote")
	f.IntVar(&p.Seeds, "seeds", 300, "`NUMBER` of the simulation's seeds, from 1")
	f.StringVar(&p.Tests, "run", "", "run only tests that match this `REGEXP`; it selects no subtests")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: mutate PACKAGE [flags]")
		f.PrintDefaults()
	}
	for len(args) > 0 { // flags may follow the package
		if err := f.Parse(args); err != nil {
			return err
		}
		if args = f.Args(); len(args) > 0 {
			if p.Package != "" {
				return fmt.Errorf("one package, not %q and %q", p.Package, args[0])
			}
			p.Package, args = args[0], args[1:]
		}
	}
	if p.Package == "" || p.N < 1 {
		f.Usage()
		return flag.ErrHelp
	}
	survivors, count, err := Run(ctx, p, os.Stdout)
	fmt.Printf("\n%d %s, %d %s, %d %s\n", count[Found], Found, count[FoundLate], FoundLate, count[Survived], Survived)
	for _, s := range survivors {
		fmt.Println(s)
	}
	return err
}
