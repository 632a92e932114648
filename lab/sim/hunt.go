package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/lab/sim/swarm"
)

// run plays many seeds.
type run struct {
	o     *options
	pool  *pool
	ctx   context.Context
	first uint64
	began time.Time

	mu       sync.Mutex
	next     uint64
	worlds   int
	failures []outcome
	err      error
}

// huntSeeds plays seeds until the requested number or time is reached, or one fails.
func huntSeeds(o *options) error {
	r := &run{o: o, pool: newPool(o.workers, o.patience), began: time.Now()}
	defer r.pool.close()
	r.first = 1 + rand.Uint64N(1e12)
	if o.from != "" {
		var err error
		if r.first, err = parseSeed(o.from); err != nil {
			return err
		}
	}
	r.next = r.first
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt does not wait
	if o.span > 0 {
		ctx, stop = context.WithTimeout(ctx, o.span)
		defer stop()
	}
	r.ctx = ctx
	fmt.Printf("seeds from %d\n", r.first)
	var wg sync.WaitGroup
	for range o.workers {
		wg.Go(r.playSeeds)
	}
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.reportProgress(ended)
	}()
	wg.Wait()
	close(ended)
	<-watched
	return r.printReport()
}

// playSeeds plays seeds, one after the other.
func (r *run) playSeeds() {
	for {
		seed, ok := r.takeSeed()
		if !ok {
			return
		}
		o, err := r.pool.playWorld(job{Seed: seed, Only: r.o.workloadNames()})
		if !r.recordOutcome(o, err) {
			return
		}
	}
}

// takeSeed returns the next seed.
func (r *run) takeSeed() (seed uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ctx.Err() != nil, r.err != nil, len(r.failures) > 0 && !r.o.keepGoing:
		return 0, false
	case r.o.seeds > 0 && r.next-r.first >= r.o.seeds:
		return 0, false
	}
	seed = r.next
	r.next++
	return seed, true
}

// recordOutcome records the outcome of a seed, and reports whether to continue.
func (r *run) recordOutcome(o outcome, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = cmp.Or(r.err, err)
		return false
	}
	r.worlds++
	if o.Failure != "" {
		r.failures = append(r.failures, o)
		if r.o.keepGoing {
			line, _, _ := strings.Cut(o.Failure, "\n")
			fmt.Printf("seed %d failed: %s\n", o.Seed, line)
		}
	}
	return true
}

// reportProgress prints the progress until ended is closed.
func (r *run) reportProgress(ended chan struct{}) {
	say := time.NewTicker(20 * time.Second)
	defer say.Stop()
	for {
		select {
		case <-ended:
			return
		case <-say.C:
			r.mu.Lock()
			fmt.Println(r.paceText())
			r.mu.Unlock()
		}
	}
}

// paceText formats how many worlds were played, and how fast.
func (r *run) paceText() string {
	took := time.Since(r.began)
	return fmt.Sprintf("%d worlds, each played twice, in %v: %.0f a minute, %d failures",
		r.worlds, took.Round(time.Second), float64(r.worlds)/took.Minutes(), len(r.failures))
}

// printReport prints the results.
func (r *run) printReport() error {
	if r.err != nil {
		return r.err
	}
	if r.next > r.first {
		fmt.Printf("seeds %d to %d: %s\n", r.first, r.next-1, r.paceText())
	}
	if len(r.failures) == 0 {
		return nil
	}
	slices.SortFunc(r.failures, func(a, b outcome) int { return cmp.Compare(a.Seed, b.Seed) })
	if r.o.keepGoing {
		printKinds(r.failures)
		return errReported
	}
	f := r.failures[0]
	fmt.Printf("seed %d failed: %s\n", f.Seed, f.Failure)
	r.shrinkPlan(f)
	return errReported
}

// shrinkPlan prints the smallest plan with a failure of the same class.
func (r *run) shrinkPlan(f outcome) {
	if r.o.shrink <= 0 {
		return
	}
	plan := swarm.Draw(f.Seed, r.o.workloadNames()...)
	var items []int
	for _, i := range plan.Items() {
		items = append(items, i.N)
	}
	class, end := swarm.Class(f.Failure), time.Now().Add(r.o.shrink)
	without := swarm.Shrink(items, func(without []int) bool {
		if time.Now().After(end) {
			return false
		}
		o, err := r.pool.playWorld(job{f.Seed, without, r.o.workloadNames()})
		return err == nil && swarm.Class(o.Failure) == class
	})
	plan.Without(without)
	if time.Now().After(end) {
		fmt.Printf("within %v, it shrinks:\n", r.o.shrink)
	}
	fmt.Printf("%d of its %d items are enough:\n%s", len(items)-len(without), len(items), plan.Words())
	fmt.Printf("it is repeated by\n%s\n", r.o.replayCommand(f.Seed, without))
}

// replayCommand returns the command that plays a world again.
func (o *options) replayCommand(seed uint64, without []int) string {
	s := fmt.Sprintf("go run ./lab/sim -seed %d", seed)
	if len(without) > 0 {
		s += " -without " + swarm.FormatItems(without)
	}
	if o.only != "" {
		s += " -only " + o.only
	}
	return s
}
