package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/swarm"
)

// options are the flags.
type options struct {
	seed      string
	without   string
	only      string
	seeds     uint64
	from      string
	span      time.Duration
	workers   int
	patience  time.Duration
	keepGoing bool
	shrink    time.Duration
	verbose   bool
}

func main() {
	var o options
	flag.StringVar(&o.seed, "seed", "", "play one `seed`, and print what happens")
	flag.StringVar(&o.without, "without", "", "with -seed: leave out these `items`, such as 3,7-12")
	flag.StringVar(&o.only, "only", "", "only these `workloads`, such as calls,remote")
	flag.Uint64Var(&o.seeds, "seeds", 0, "play so many seeds")
	flag.StringVar(&o.from, "from", "", "the first `seed`; without it a random one")
	flag.DurationVar(&o.span, "for", 0, "play fresh seeds for so long")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many processes play")
	flag.DurationVar(&o.patience, "patience", time.Minute, "how long a seed may take, of processor time")
	flag.BoolVar(&o.keepGoing, "keep-going", false, "do not end at the first failure, and count failures by kind")
	flag.DurationVar(&o.shrink, "shrink", 30*time.Second, "how long to leave out of a failure what it does not need; 0: not at all")
	flag.BoolVar(&o.verbose, "v", false, "with -seed: print what is not part of the trace, too, such as log lines")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	for _, name := range o.workloadNames() {
		if !swarm.Known(name) {
			exitWith(fmt.Errorf("there is no workload %q", name))
		}
	}
	var err error
	switch {
	case os.Getenv(workerEnv) != "":
		inTest(serveJobs)
	case o.seed != "":
		inTest(func(t *testing.T) error { return replaySeed(t, &o) })
	case o.seeds > 0 || o.span > 0:
		err = huntSeeds(&o)
	default:
		flag.Usage()
		os.Exit(2)
	}
	exitWith(err)
}

// exitWith ends the program.
func exitWith(err error) {
	if err == nil {
		os.Exit(0)
	}
	if !errors.Is(err, errReported) {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// errReported is a failure that is already printed.
var errReported = errors.New("failed")

// inTest calls fn with a test, as required by testing/synctest, and ends the program.
func inTest(fn func(t *testing.T) error) {
	tests := []testing.InternalTest{{Name: "simulation", F: func(t *testing.T) { exitWith(fn(t)) }}}
	testing.Main(func(string, string) (bool, error) { return true, nil }, tests, nil, nil)
}

// replaySeed plays one seed, and prints its trace.
func replaySeed(t *testing.T, o *options) error {
	plan, err := o.drawPlan(o.seed, o.without)
	if err != nil {
		return err
	}
	fmt.Print(plan.Words())
	r := plan.Twice(t, func(line string) {
		if o.verbose || !strings.HasPrefix(line, world.Aside) {
			fmt.Println(line)
		}
	})
	if r.Failure != "" {
		fmt.Printf("seed %d failed: %s\n", plan.Seed, r.Failure)
		return errReported
	}
	fmt.Printf("seed %d passes: %d steps, %v, trace %016x\n", plan.Seed, r.Steps, r.Elapsed, r.Hash)
	return nil
}

// parseSeed parses a seed.
func parseSeed(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no seed: it is a number of at most 64 bits", s)
	}
	return n, nil
}

// drawPlan draws a plan, and leaves items out.
func (o *options) drawPlan(seed, without string) (*swarm.Plan, error) {
	n, err := parseSeed(seed)
	if err != nil {
		return nil, err
	}
	items, err := swarm.ParseItems(without)
	if err != nil {
		return nil, err
	}
	plan := swarm.Draw(n, o.workloadNames()...)
	plan.Without(items)
	return plan, nil
}

// workloadNames returns the workloads of -only.
func (o *options) workloadNames() []string {
	if o.only == "" {
		return nil
	}
	return strings.Split(o.only, ",")
}
