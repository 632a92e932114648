package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/reconnect"
)

var faultSeeds = flag.Int("faultseeds", 5, "orders of faults that TestPoolUnderFaults plays, a second or two each")

var (
	placeOrder = NewRawMethod("test.Order")
	placeTwice = NewRawMethod("test.OrderTwice", MethodConfig{Idempotent: true})
)

// orders is what callers and servers know of calls, each of which has a number of its own.
type orders struct {
	mu       sync.Mutex
	executed map[uint64]int
	answered map[uint64]bool
	failed   map[uint64]error
	took     []time.Duration
}

// handle makes a server execute orders, in 5 to 15 ms unless the member is slow.
func (o *orders) handle(m *member) {
	execute := func(ctx context.Context, q, reply []byte) ([]byte, error) {
		o.mu.Lock()
		o.executed[binary.BigEndian.Uint64(q)]++
		o.mu.Unlock()
		m.mu.Lock()
		delay := time.Duration(5+rand.N(10))*time.Millisecond + m.delay
		m.mu.Unlock()
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return append(reply, q...), nil
	}
	HandleRaw(m.s, placeOrder, execute)
	HandleRaw(m.s, placeTwice, execute)
}

// call makes one call, and notes what became of it.
func (o *orders) call(f *fleet, m RawMethod, n uint64) {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	got, err := CallRaw(ctx, f.c, m, binary.BigEndian.AppendUint64(nil, n), nil)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.failed[n] = err
		return
	}
	if len(got) != 8 || binary.BigEndian.Uint64(got) != n {
		f.t.Errorf("call %d is answered with %x", n, got)
	}
	o.answered[n] = true
	o.took = append(o.took, time.Since(begin))
}

// percentile returns the time within which p per cent of the answers came.
func (o *orders) percentile(p int) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.Sort(o.took)
	return o.took[len(o.took)*p/100]
}

// During ten seconds one of five servers is killed, one frozen, one slow, one drains, and every
// second the roles change. No answer is lost, and nothing runs twice that must not. Calls that can
// be made again are answered, unless the budget of repetitions is spent, and nearly all as fast as
// in calm: the others went to a server that has become slow or silent since its last answer, or
// waited for the only healthy one to be connected again.
func TestPoolUnderFaults(t *testing.T) {
	seeds := *faultSeeds
	if testing.Short() {
		seeds = min(seeds, 2)
	}
	for seed := range seeds {
		cfg := PoolConfig{Hedge: 15 * time.Millisecond, EjectFor: time.Second}
		cfg.Retry.Attempts = 3
		cfg.Backoff = reconnect.Backoff{First: 5 * time.Millisecond, Most: 10 * time.Millisecond}
		inFleet(t, 5, cfg, func(f *fleet) {
			calm := newOrders(f)
			calm.play(f, time.Second, func() {})
			o := newOrders(f)
			roles := rand.New(rand.NewPCG(uint64(seed), 1))
			var undo []func()
			o.play(f, 10*time.Second, func() {
				for _, fn := range undo {
					fn()
				}
				undo = f.roles(roles.Perm(5), o)
			})
			for _, fn := range undo {
				fn()
			}
			o.judge(f, calm.percentile(99))
		})
	}
}

func newOrders(f *fleet) *orders {
	o := &orders{executed: make(map[uint64]int), answered: make(map[uint64]bool), failed: make(map[uint64]error)}
	for _, m := range f.members {
		m.s.Close()
		m.serve(f.t)
		o.handle(m)
	}
	f.Advance(30 * time.Second) // all are connected, and have started
	return o
}

// play makes calls for d, 20 at a time, half of them idempotent, and calls change every second.
func (o *orders) play(f *fleet, d time.Duration, change func()) {
	f.t.Helper()
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for i := range uint64(20) {
		all.Go(func() {
			m := placeOrder
			if i%2 == 0 {
				m = placeTwice
			}
			for n := i; time.Now().Before(end); n += 20 {
				o.call(f, m, n)
			}
		})
	}
	for time.Now().Before(end) {
		change()
		time.Sleep(time.Second)
	}
	all.Wait()
}

// roles gives each server its part for a second. undo ends them.
func (f *fleet) roles(parts []int, o *orders) (undo []func()) {
	killed, frozen, slow, drains := f.members[parts[0]], f.members[parts[1]], f.members[parts[2]], f.members[parts[3]]
	killed.s.Close()
	f.Freeze(frozen.device)
	slow.set(300*time.Millisecond, nil)
	drained := make(chan struct{})
	go func() {
		_ = drains.s.Shutdown(f.t.Context())
		drains.s.Close()
		close(drained)
	}()
	return []func(){
		func() { killed.serve(f.t); o.handle(killed) },
		func() { f.Thaw(frozen.device) },
		func() { slow.set(0, nil) },
		func() { <-drained; drains.serve(f.t); o.handle(drains) },
	}
}

// judge compares what callers and servers know.
func (o *orders) judge(f *fleet, calm time.Duration) {
	f.t.Helper()
	twice, lost, failed := 0, 0, 0
	for n, times := range o.executed {
		if n%2 == 1 && times > 1 {
			twice++
		}
	}
	for n, err := range o.failed {
		var e *Error
		switch {
		case !errors.As(err, &e):
			f.t.Errorf("call %d: %v", n, err)
		case e.Fate.NotExecuted() && o.executed[n] > 0:
			f.t.Errorf("call %d was executed: %v", n, err)
		case n%2 == 0:
			failed++
			f.t.Logf("call %d: %v", n, err)
		}
	}
	for n := range o.answered {
		if o.executed[n] == 0 {
			lost++
		}
	}
	p95, p99 := o.percentile(95), o.percentile(99)
	f.t.Logf("%d answered, %d failed (%d idempotent), 95 %% within %v, 99 %% within %v, in calm within %v",
		len(o.answered), len(o.failed), failed, p95, p99, calm)
	if twice+lost > 0 {
		f.t.Errorf("%d ran twice, %d were answered by nobody", twice, lost)
	}
	if failed > len(o.answered)/500 { // the budget of repetitions was spent
		f.t.Errorf("%d idempotent calls have failed", failed)
	}
	if p95 > 2*calm {
		f.t.Errorf("95 %% take up to %v, in calm 99 %% take %v", p95, calm)
	}
}
