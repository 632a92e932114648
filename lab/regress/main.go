// Regress compares the speed of this tree with that of an earlier commit, in some five minutes, so
// that a loss of one percent at a time is noticed:
//
//	go run ./lab/regress -base COMMIT
//	go run ./lab/regress -base COMMIT -rounds 20 OneWay Unary
//
// Without -base it is the commit in lab/regress/base: the last release, or the commit to which
// figures were last related. Arguments select benchmarks whose names contain one of them.
//
// Both trees' test binaries are built. Each round runs every benchmark once with each of them, in
// turns, one first in even rounds and the other first in odd rounds. A pair's ratio is what the
// tree needs divided by what the commit needs, so less than 1 is better. The table has the median
// of the ratios and their spread, from the lower to the upper quartile.
//
// Regress fails if the spread of a time or of a size is entirely above 1.1, and if a benchmark
// allocates more often than before. It fails as well where a benchmark fails in this tree. A
// benchmark that the commit does not have is listed without a ratio.
//
// With -instructions it counts the instructions that an operation executes outside the kernel, and
// lists the functions that execute most of them. These figures hardly depend on other processes.
// It needs Debian's packages qemu-user and gcc on linux/amd64.
//
// The times are of the processor where a benchmark reports those (cpu-ns/op), because other
// processes disturb them less. Nevertheless, the machine should be idle.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

//go:embed base
var base string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "regress:", err)
		}
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	f := flag.NewFlagSet("regress", flag.ContinueOnError)
	commit := f.String("base", strings.TrimSpace(base), "the `COMMIT` to compare with")
	rounds := f.Int("rounds", 8, "`NUMBER` of pairs of each benchmark")
	count := f.Bool("instructions", false, "count instructions, with QEMU, instead of measuring times")
	if err := f.Parse(args); err != nil {
		return err
	}
	var chosen []benchmark
	for _, b := range benchmarks {
		if b.matches(f.Args()) {
			chosen = append(chosen, b)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no benchmark's name contains one of %q", f.Args())
	}
	w, err := newWorkshop(ctx, *commit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.buildBinaries(ctx, chosen); err != nil {
		return err
	}
	if *count {
		return w.compareInstructions(ctx, chosen)
	}
	return w.compareTimes(ctx, chosen, *rounds)
}

// compareTimes prints the table of the benchmarks' times and sizes.
func (w *workshop) compareTimes(ctx context.Context, chosen []benchmark, rounds int) error {
	fmt.Printf("against %s, %d pairs of each; less than 1 is better\n\n", w.commit, rounds)
	fmt.Println("| benchmark | before | now | ratio | spread | |\n|---|---|---|---|---|---|")
	worse := 0
	for _, b := range chosen {
		pairs, err := w.measureBenchmark(ctx, b, rounds)
		if err != nil {
			return err
		}
		worse += printComparison(b, pairs)
	}
	if worse > 0 {
		return fmt.Errorf("%d of the figures are worse than at %s", worse, w.commit)
	}
	return nil
}

// printComparison prints the rows of a benchmark, and returns how many of them are worse.
func printComparison(b benchmark, pairs [][2]figures) (worse int) {
	for _, c := range comparePairs(pairs) {
		fmt.Println(c.tableRow(b.name()))
		if c.isWorse() {
			worse++
		}
	}
	return worse
}

// compareInstructions prints a table of each benchmark's instructions.
func (w *workshop) compareInstructions(ctx context.Context, chosen []benchmark) error {
	plugin, err := w.buildPlugin(ctx)
	if err != nil {
		return err
	}
	for _, b := range chosen {
		sides, err := w.countInstructions(ctx, plugin, b)
		if err != nil {
			return err
		}
		fmt.Printf("against %s\n\n| benchmark | before | now | ratio | spread | |\n|---|---|---|---|---|---|\n", w.commit)
		printComparison(b, [][2]figures{{sides[before].figures(), sides[now].figures()}})
		fmt.Printf("\n%s\n", functionTable(sides))
	}
	return nil
}
