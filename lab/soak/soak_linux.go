package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// runSoak runs the pairs concurrently, prints the results, and returns an error that lists the
// problems.
func runSoak(ctx context.Context, plans []plan, seed uint64, long time.Duration) error {
	fmt.Printf("soak: %d pairs for %v, -seed %d\n", len(plans), long, seed)
	fmt.Println("packets travel through this process, which delays, loses and cuts; netem is not needed")
	var (
		pairs []*pair
		all   sync.WaitGroup
		print sync.Mutex
	)
	errs := make([]error, len(plans))
	for i, plan := range plans {
		p := newPair(plan, seed, func(format string, args ...any) {
			print.Lock()
			defer print.Unlock()
			fmt.Printf(format+"\n", args...)
		})
		pairs = append(pairs, p)
		all.Go(func() { errs[i] = p.run(ctx, seed, long) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var growths []growth
	var problems []error
	for _, p := range pairs {
		p.addUpWork(p.both[server])
		p.addUpWork(p.both[client])
		if p.Scale.WorthJudging {
			growths = append(growths, p.judgeAll()...)
		}
		for _, text := range p.problems {
			problems = append(problems, errors.New(text))
		}
	}
	printTables(os.Stdout, pairs, growths)
	return errors.Join(problems...)
}
