package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Every policy gives every server calls: RoundRobin the same number.
func TestBalance(t *testing.T) {
	for balance, within := range map[Balance][2]int{LeastLoaded: {200, 400}, RoundRobin: {300, 300}, ByKey: {200, 400}} {
		t.Run(fmt.Sprint(balance), func(t *testing.T) {
			inFleet(t, 3, PoolConfig{Balance: balance}, func(f *fleet) {
				f.connected()
				f.Advance(time.Minute) // the slow start
				got := make(map[string]int)
				for i := range 900 {
					got[f.call(WithKey(f.t.Context(), fmt.Sprint(i)))]++
				}
				for addr, n := range got {
					if n < within[0] || n > within[1] {
						f.t.Errorf("%s: %d calls of 900", addr, n)
					}
				}
				if len(got) != 3 {
					f.t.Errorf("%v", got)
				}
			})
		})
	}
}

// A slow server gets fewer calls from those that look for the least loaded.
func TestLeastLoaded(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		f.Advance(time.Minute)
		f.members[0].set(time.Second, nil)
		for _, m := range f.members[1:] {
			m.set(10*time.Millisecond, nil)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 100 {
					f.call(f.t.Context())
				}
			})
		}
		all.Wait()
		if n := f.members[0].called(); n > 200 {
			f.t.Errorf("the server that is 100 times slower has got %d calls of 2,000", n)
		}
	})
}

// A key's server stays the same, also from another client, in programs of other versions, and for
// the keys of other servers when one is gone.
func TestByKey(t *testing.T) {
	inFleet(t, 4, PoolConfig{Balance: ByKey}, func(f *fleet) {
		f.connected()
		other := NewPool(f.Runtime(), Static(reversed(f.addrs())...), PoolConfig{Balance: ByKey})
		defer other.Close()
		if err := other.Connect(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		f.Wait()
		of := make(map[string]string)
		for i := range 100 {
			key := fmt.Sprint("key", i)
			of[key] = f.call(WithKey(f.t.Context(), key))
			if got, _ := CallRaw(WithKey(f.t.Context(), key), other, who, nil, nil); string(got) != of[key] {
				f.t.Errorf("%s: %s at one client, %s at another", key, of[key], got)
			}
		}
		for i, member := range []int{2, 0, 0, 1, 0, 3, 3, 3} { // of fmix64 over FNV-1a
			if key := fmt.Sprint("key", i); of[key] != f.members[member].addr {
				f.t.Errorf("%s: %s, want %s as in other versions", key, of[key], f.members[member].addr)
			}
		}
		gone := f.members[1]
		gone.s.Close()
		f.Wait()
		for _, key := range slices.Sorted(maps.Keys(of)) {
			got := f.call(WithKey(f.t.Context(), key))
			if (of[key] != gone.addr) != (got == of[key]) {
				f.t.Errorf("%s: at %s after %s, and %s is gone", key, got, of[key], gone.addr)
			}
		}
	})
}

func reversed(s []string) []string {
	slices.Reverse(s)
	return s
}

// Streams that are open and say nothing do not make a server look slow.
func TestIdleStreamsOfAPool(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		f.Advance(time.Minute)
		for range 6 {
			in, err := Open(f.t.Context(), f.c, count, wrapperspb.Int64(1<<40))
			if err != nil {
				f.t.Fatal(err)
			}
			defer in.Close()
		}
		f.Advance(time.Hour)
		for _, m := range f.members {
			m.set(10*time.Millisecond, nil)
		}
		for range 90 {
			f.call(f.t.Context())
		}
		for _, m := range f.members {
			if n := m.called(); n < 10 {
				f.t.Errorf("%s: %d calls of 90", m.addr, n)
			}
		}
	})
}

// A server that fails fast has few calls in flight: it is ejected, and comes back.
func TestEject(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		f.Advance(time.Minute)
		bad := f.members[0]
		bad.set(0, ErrInternal)
		failed := 0
		for range 300 {
			if _, err := CallRaw(f.t.Context(), f.c, who, nil, nil); err != nil {
				failed++
			}
		}
		if failed != 5 {
			f.t.Errorf("%d calls have failed before it was ejected", failed)
		}
		if i := slices.IndexFunc(f.c.Servers(), func(s ServerInfo) bool { return !s.Ejected.IsZero() }); i != 0 {
			f.t.Errorf("%+v", f.c.Servers())
		}
		bad.set(0, nil)
		f.Advance(10*time.Second + time.Millisecond)
		before := bad.called()
		f.crowd(300)
		if n := bad.called() - before; n == 0 || n > 50 {
			f.t.Errorf("%d calls of 300 immediately after it was ejected", n)
		}
		f.Advance(time.Minute)
		before = bad.called()
		f.crowd(300)
		if n := bad.called() - before; n < 60 {
			f.t.Errorf("%d calls of 300 a minute later", n)
		}
	})
}

// At most half of the servers are ejected: calls fail, but the others are not overrun.
func TestHalfIsEjectedAtMost(t *testing.T) {
	inFleet(t, 4, PoolConfig{}, func(f *fleet) {
		f.connected()
		for _, m := range f.members {
			m.set(0, ErrInternal)
		}
		for range 200 {
			if _, err := CallRaw(f.t.Context(), f.c, who, nil, nil); !errors.Is(err, ErrInternal) {
				f.t.Errorf("got %v", err)
			}
		}
		ejected := 0
		for _, s := range f.c.Servers() {
			if !s.Ejected.IsZero() {
				ejected++
			}
		}
		if ejected != 2 {
			f.t.Errorf("%d of 4 are ejected", ejected)
		}
	})
}

// A server that is well between two ejections is ejected as shortly as the first time.
func TestEjectionsAreForgotten(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.connected()
		bad := f.members[0]
		for range 3 {
			bad.set(0, ErrInternal)
			for range 200 {
				_, _ = CallRaw(f.t.Context(), f.c, who, nil, nil)
			}
			until := f.c.Servers()[0].Ejected
			if d := time.Until(until); d <= 0 || d > 10*time.Second {
				f.t.Errorf("it is ejected for %v", d)
			}
			bad.set(0, nil)
			f.Advance(time.Minute)
			f.crowd(100)
		}
	})
}

// If the only other server is ejected, it gets the second attempt. When it answers, its ejection
// ends.
func TestHedgeAtAnEjectedServer(t *testing.T) {
	inFleet(t, 2, PoolConfig{Hedge: 50 * time.Millisecond}, func(f *fleet) {
		f.connected()
		f.members[0].set(0, ErrInternal)
		for f.c.Servers()[0].Ejected.IsZero() {
			_, _ = CallRaw(f.t.Context(), f.c, who, nil, nil)
		}
		f.members[0].set(0, nil)
		f.members[1].set(time.Hour, nil)
		f.Advance(time.Millisecond)
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		if got, err := CallRaw(ctx, f.c, whoTwice, nil, nil); err != nil || string(got) != f.members[0].addr {
			f.t.Errorf("%q, %v", got, err)
		}
		if s := f.c.Servers()[0]; !s.Ejected.IsZero() {
			f.t.Errorf("%+v is still ejected", s)
		}
	})
}

// A call of an idempotent method that one server does not answer is answered by another; the first
// attempt is cancelled. Other methods are not called twice.
func TestHedge(t *testing.T) {
	inFleet(t, 2, PoolConfig{Hedge: 50 * time.Millisecond}, func(f *fleet) {
		f.connected()
		slow := f.members[0]
		slow.set(time.Hour, nil)
		for range 20 {
			begin := f.Elapsed()
			got, err := CallRaw(f.t.Context(), f.c, whoTwice, nil, nil)
			if err != nil || string(got) != f.members[1].addr || f.Elapsed()-begin > 60*time.Millisecond {
				f.t.Errorf("%q after %v, %v", got, f.Elapsed()-begin, err)
			}
		}
		f.Wait()
		if n, m := f.c.InFlight(), slow.s.InFlight(); n+m != 0 {
			f.t.Errorf("%d and %d attempts are still in flight", n, m)
		}
		if slow.called() == 0 {
			f.t.Error("the slow server was never asked")
		}
		slow.set(time.Second, nil)
		f.members[1].set(time.Second, nil)
		f.c.budget.left.Store(0)
		before := slow.called() + f.members[1].called()
		f.call(f.t.Context())
		if _, err := CallRaw(f.t.Context(), f.c, whoTwice, nil, nil); err != nil {
			f.t.Error(err)
		}
		if n := slow.called() + f.members[1].called() - before; n != 2 {
			f.t.Errorf("%d executions of a call that is not idempotent, and one beyond the budget", n)
		}
	})
}
