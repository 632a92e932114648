package rpc

import (
	"testing"
	"time"
)

// A further attempt is made at another server, or at none: not at the one that is silent, if the
// other has no place for it.
func TestHedgeGoesElsewhere(t *testing.T) {
	inFleet(t, 2, PoolConfig{Hedge: 50 * time.Millisecond, SlowStart: -1}, func(f *fleet) {
		f.connected()
		for _, m := range f.members {
			m.set(10*time.Second, nil)
		}
		ended := make(chan error, 2)
		for range 2 { // one at each server
			go func() {
				_, err := CallRaw(f.t.Context(), f.c, who, nil, nil)
				ended <- err
			}()
			f.Wait()
		}
		full := f.c.endpoints[1].link
		full.out.mu.Lock()
		full.limit = 1
		full.out.mu.Unlock()
		f.members[0].set(time.Second, nil)
		if _, err := CallRaw(f.t.Context(), f.c, whoTwice, nil, nil); err != nil {
			f.t.Error(err)
		}
		for range 2 {
			if err := <-ended; err != nil {
				f.t.Error(err)
			}
		}
		if n := f.members[0].called() + f.members[1].called(); n != 3 {
			f.t.Errorf("%d executions of 3 calls", n)
		}
		if n := f.c.budget.left.Load(); n != budgetReserve {
			f.t.Errorf("the budget is %d: an attempt that was not made was paid for", n)
		}
	})
}

// A broken server that gets a further attempt, because it is the only other one, does not lose the
// call: its error counts only if no other attempt is under way.
func TestHedgeAtABrokenServer(t *testing.T) {
	inFleet(t, 2, PoolConfig{Hedge: 50 * time.Millisecond}, func(f *fleet) {
		f.connected()
		f.eject(0)
		f.members[0].set(0, ErrInternal)
		f.members[1].set(80*time.Millisecond, nil)
		if got, err := CallRaw(f.t.Context(), f.c, whoTwice, nil, nil); err != nil || string(got) != f.members[1].addr {
			f.t.Errorf("%q, %v, want the answer of the server that is well", got, err)
		}
		f.members[1].set(80*time.Millisecond, ErrInternal)
		_, err := CallRaw(f.t.Context(), f.c, whoTwice, nil, nil)
		want(f.t, err, ErrInternal, FateAnswered)
	})
}

// A call that is late when its pool has lost its last server is answered over the connection that
// drains.
func TestHedgeWithoutServers(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(f *fleet) {
		var l listed
		c := NewPool(f.Runtime(), &l, PoolConfig{Hedge: 50 * time.Millisecond})
		defer c.Close()
		f.members[0].set(time.Second, nil)
		ended := make(chan error, 1)
		go func() {
			_, err := CallRaw(f.t.Context(), c, whoTwice, nil, nil)
			ended <- err
		}()
		f.Wait()
		l.update(f.addrs(), nil)
		f.Wait()
		l.update(nil, nil)
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
}
