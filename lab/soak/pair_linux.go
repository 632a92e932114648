package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"time"
)

// pair is a server and a client under faults.
type pair struct {
	plan
	link   *link
	faults faults
	began  time.Time
	lived  time.Duration
	log    func(format string, args ...any)
	both   [2]*process // only for the pair's goroutine

	mu         sync.Mutex
	calm       bool
	rows       []row
	recoveries []recovery
	problems   []string
	errors     [2]map[string]uint64 // of processes that have ended
	done       map[string]uint64
}

func newPair(p plan, seed uint64, log func(string, ...any)) *pair {
	n := &pair{plan: p, began: time.Now(), done: make(map[string]uint64)}
	n.log = func(format string, args ...any) {
		log("%7.1f s  %s: %s", time.Since(n.began).Seconds(), p.Name, fmt.Sprintf(format, args...))
	}
	n.faults = faults{rand.New(rand.NewPCG(seed, uint64(crc32.ChecksumIEEE([]byte(p.Name))))), p.Kinds, p.Mortal, p.Scale}
	return n
}

// run runs the pair for the given time. Its error concerns the rig; faults that it found are in
// problems.
func (p *pair) run(ctx context.Context, seed uint64, long time.Duration) (err error) {
	if p.link, err = newLink(seed); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.link.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for _, left := range p.both {
			if left != nil {
				left.killAndWait()
			}
		}
	}()
	for s := range p.both {
		if err := p.startProcess(ctx, side(s), 1); err != nil {
			return err
		}
	}
	p.awaitRecovery(ctx, "start", time.Now())
	for ctx.Err() == nil && time.Since(p.began) < long {
		if err := p.injectFaults(ctx, long); err != nil {
			return err
		}
		p.checkQuiet(ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.lived = time.Since(p.began)
	for _, s := range []side{client, server} {
		if err := p.both[s].shutDown(); err != nil {
			p.addProblem("%v", err)
		}
	}
	return nil
}

func (p *pair) startProcess(ctx context.Context, s side, number uint64) (err error) {
	at := addresses{serverIP + ":7471", serverIP + ":7472", serverIP + ":7473"}
	r := role{Side: s, Number: number, Server: at, Scale: p.Scale}
	p.both[s], err = startProcess(ctx, p.link.ends[s], r, p.recordSample)
	return err
}

// recordSample records a sample.
func (p *pair) recordSample(of *process, s sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range s.Wrong {
		p.problemLocked("%v: %s", of.role, w)
	}
	if s.Has != nil {
		p.rows = append(p.rows, row{
			At: s.At.Sub(p.began), Side: of.role.Side, Calm: p.calm, footprint: *s.Has,
		})
	}
}

func (p *pair) addProblem(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problemLocked(format, args...)
}

func (p *pair) problemLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.problems = append(p.problems, fmt.Sprintf("%s: %s", p.Name, text))
	p.log("WRONG: %s", text)
}

// injectFaults injects one fault after the other.
func (p *pair) injectFaults(ctx context.Context, long time.Duration) error {
	for end := time.Now().Add(p.Scale.Storm); ctx.Err() == nil && time.Now().Before(end) && time.Since(p.began) < long; {
		f, pause := p.faults.nextFault()
		p.link.setWeather(f.Weather)
		if err := p.injectFault(ctx, f); err != nil {
			return fmt.Errorf("%s: %v: %w", p.Name, f, err)
		}
		over := time.Now()
		if after, ok := p.awaitRecovery(ctx, f.String(), over); ok {
			p.mu.Lock()
			p.recoveries = append(p.recoveries, recovery{f, after})
			p.mu.Unlock()
			p.log("%v; everything went on after %v", f, after.Round(time.Millisecond))
		}
		sleepFor(ctx, pause)
	}
	return nil
}

// injectFault injects a fault, and waits until it is over.
func (p *pair) injectFault(ctx context.Context, f fault) error {
	switch f.Kind {
	case kill:
		return p.restartProcess(ctx, f.Side)
	case stop:
		return p.both[f.Side].suspendFor(ctx, f.For)
	case down:
		if err := p.link.setDown(f.Side, true); err != nil {
			return err
		}
		sleepFor(ctx, f.For)
		return p.link.setDown(f.Side, false)
	}
	p.link.setCut(f.Side, true)
	if f.Kind != deaf {
		p.link.setCut(1-f.Side, true)
	}
	if f.Kind == vanish {
		if err := p.restartProcess(ctx, f.Side); err != nil {
			return err
		}
	}
	sleepFor(ctx, f.For)
	p.link.setCut(server, false)
	p.link.setCut(client, false)
	return nil
}

// restartProcess kills a process and starts the next.
func (p *pair) restartProcess(ctx context.Context, s side) error {
	old := p.both[s]
	old.killAndWait()
	p.addUpWork(old)
	return p.startProcess(ctx, s, old.role.Number+1)
}

// addUpWork adds up the work of a process that ends.
func (p *pair) addUpWork(old *process) {
	s := old.lastSample()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.errors[old.role.Side] == nil {
		p.errors[old.role.Side] = make(map[string]uint64)
	}
	for name, n := range s.Errors {
		p.errors[old.role.Side][name] += n
	}
	if old.role.Side == client {
		for name, n := range s.Done {
			p.done[name] += n
		}
	}
}

// awaitRecovery waits until the client has done some of every kind of work since then.
func (p *pair) awaitRecovery(ctx context.Context, what string, since time.Time) (after time.Duration, ok bool) {
	var before *sample
	var missing []string
	for time.Since(since) < p.Scale.recoveryBound() && ctx.Err() == nil {
		s := p.both[client].lastSample()
		switch {
		case s.At.Before(since):
		case before == nil:
			before = &s
		default:
			missing = missing[:0]
			for _, k := range kindsOfWork {
				if s.Done[k] <= before.Done[k] {
					missing = append(missing, k)
				}
			}
			if len(missing) == 0 {
				return s.At.Sub(since), true
			}
		}
		sleepFor(ctx, beat/5)
	}
	if ctx.Err() == nil {
		p.addProblem("%v after this there is still no progress in %q: %s", p.Scale.recoveryBound(), missing, what)
	}
	return 0, false
}

// checkQuiet stops the faults, and checks that after a while nothing fails.
func (p *pair) checkQuiet(ctx context.Context) {
	p.link.setWeather(weather{})
	sleepFor(ctx, p.Scale.Settle)
	before := [2]sample{p.both[server].lastSample(), p.both[client].lastSample()}
	p.setCalm(true)
	sleepFor(ctx, p.Scale.Calm)
	p.setCalm(false)
	for s, b := range before {
		now := p.both[s].lastSample()
		for name, n := range now.Errors {
			if n > b.Errors[name] {
				p.addProblem("%v: %d errors while there are no faults: %s", side(s), n-b.Errors[name], name)
			}
		}
	}
	p.awaitRecovery(ctx, "a calm", time.Now())
}

func (p *pair) setCalm(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calm = yes
}
