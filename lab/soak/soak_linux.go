package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// soak runs the pairs concurrently, prints the results, and returns an error that lists the
// problems. With a folder it writes soak.csv and soak.svg there.
func soak(ctx context.Context, plans []plan, seed uint64, long time.Duration, folder string) error {
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
		p.retire(p.both[server])
		p.retire(p.both[client])
		if p.Scale.WorthJudging {
			growths = append(growths, p.judgeAll()...)
		}
		for _, text := range p.problems {
			problems = append(problems, errors.New(text))
		}
	}
	tables(os.Stdout, pairs, growths)
	if folder != "" {
		problems = append(problems, write(filepath.Join(folder, "soak.csv"), func(w io.Writer) { csv(w, pairs) }),
			picture(filepath.Join(folder, "soak.svg"), pairs))
	}
	return errors.Join(problems...)
}
