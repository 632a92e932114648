package share

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// longest is the longest wait in these tests.
const longest = time.Second

// await queues a call of a connection under a name, and reports whether it may wait.
func await(c *Conn, name any) (w *Waiter, ok bool) {
	if !c.Take(Waiting, 1) {
		return nil, false
	}
	w = &Waiter{Call: name}
	c.Await(w)
	return w, true
}

// Connections take places, wait for them, give up, and return their places, in any order. Never
// does a call wait although there is a place for it, and each one leaves the queue once: with its
// place, or because it gives up or its time is over. In the end nothing is taken.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		total := Amounts{Calls: 40, Waiting: 100}
		a := New(total, total, longest)
		conns := joined(a, 5, 3)
		var running []*Conn
		waiting := make(map[*Waiter]*Conn)
		left := func(w *Waiter) *Conn {
			c := waiting[w]
			if c == nil {
				t.Fatal("a call has left the queue twice")
			}
			delete(waiting, w)
			return c
		}
		begin := func(w *Waiter) {
			for ; w != nil; w = a.Next() {
				running = append(running, left(w))
			}
		}
		for range 50_000 {
			switch c := conns[random.IntN(len(conns))]; random.IntN(8) {
			case 0, 1, 2:
				if c.Take(Calls, 1) {
					running = append(running, c)
				} else if w, ok := await(c, nil); ok {
					waiting[w] = c
					begin(a.Next())
				}
			case 3, 4, 5:
				if n := len(running); n > 0 {
					i := random.IntN(n)
					c := running[i]
					running = slices.Delete(running, i, i+1)
					begin(c.GiveCall())
				}
			case 6:
				for w, c := range waiting {
					if !c.Forget(w) || c.Forget(w) {
						t.Fatal("it gives up, and has not waited once")
					}
					left(w)
					c.Give(Waiting, 1)
					break
				}
			case 7:
				time.Sleep(longest / 100)
				for w, _ := a.Expired(false); w != nil; w, _ = a.Expired(false) {
					left(w).Give(Waiting, 1)
				}
			}
			used := a.Taken()
			if used[Calls] != len(running) || used[Waiting] != len(waiting) || used[Calls] > total[Calls] || used[Waiting] > total[Waiting] {
				t.Fatalf("%v are taken, %d run, and %d wait", used, len(running), len(waiting))
			}
			for _, c := range waiting {
				if c.Take(Calls, 1) {
					t.Fatal("a call waits although there is a place for it")
				}
			}
		}
		for len(running) > 0 {
			c := running[0]
			running = running[1:]
			begin(c.GiveCall())
		}
		if used := a.Taken(); used != (Amounts{}) || len(waiting) > 0 || a.turns != ([2]line{}) {
			t.Errorf("%v are taken, %d wait", used, len(waiting))
		}
	})
}

// However many calls of an address wait, over however many connections, those of another one get
// every second place. The same applies to the connections of an address.
func TestClientsTakeTurns(t *testing.T) {
	total := Amounts{Calls: 17, Waiting: 1600}
	a := New(total, total, longest)
	conns := joined(a, 2, 30)
	for i := range 8 {
		if !conns[i].Take(Calls, 1) || !conns[30+i].Take(Calls, 1) {
			t.Fatal("there are too few places")
		}
	}
	const greedy, one, another = 10, 40, 41 // to 29; of another address
	for range 20 {
		for i := greedy; i < 30; i++ {
			await(conns[i], i)
		}
		await(conns[one], one)
		await(conns[another], another)
	}
	n := map[int]int{}
	for c := conns[0]; n[greedy]+n[one]+n[another] < 40; {
		i := c.GiveCall().Call.(int)
		c = conns[i]
		if i < 30 {
			i = greedy
		}
		n[i]++
	}
	if n[greedy] != 20 || n[one] != 10 || n[another] != 10 {
		t.Errorf("of 40 places %d, %d and %d are given", n[greedy], n[one], n[another])
	}
}

// A client that fills the queue leaves a place there to others, and its turn: the first call of
// another address is next.
func TestGreedyQueue(t *testing.T) {
	total := Amounts{Calls: 16, Waiting: 64}
	a := New(total, Amounts{Calls: 16, Waiting: 1000}, longest)
	conns := joined(a, 3, 4)
	greed(Calls, conns...)
	filled := greed(Waiting, conns[:4]...)[0] // what Await needs
	for range filled {
		conns[0].Give(Waiting, 1)
		await(conns[0], "greedy")
	}
	if filled < 40 || filled > 60 {
		t.Errorf("one address may have %d of the 64 that wait", filled)
	}
	for _, c := range []*Conn{conns[4], conns[8]} {
		if _, ok := await(c, "other"); !ok {
			t.Fatal("a client that has none may not wait")
		}
	}
	next := map[any]int{}
	for range 3 {
		next[conns[0].GiveCall().Call]++
	}
	if next["other"] != 2 {
		t.Errorf("of three places the others have got %d", next["other"])
	}
}

// Calls of a connection get their places in the order of their arrival, until the oldest has waited
// for a quarter of the longest wait. From then on the newest is next, until those have left that
// have waited for so long. Calls that have waited for the longest wait leave, the oldest first.
func TestNewestFirstUnderOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Amounts{Calls: 1, Waiting: 100}
		a := New(one, one, longest)
		c := joined(a, 1, 1)[0]
		c.Take(Calls, 1)
		next := func(want int) {
			t.Helper()
			if got := c.GiveCall().Call; got != want {
				t.Errorf("call %v is next, want %v", got, want)
			}
		}
		for i := range 8 {
			await(c, i)
			time.Sleep(longest / 100)
		}
		next(0)
		next(1)
		time.Sleep(longest / 4)
		next(7)
		await(c, 8)
		next(8)
		next(6)
		w, after := a.Expired(false)
		if w != nil || after != longest-longest/4-longest*6/100 {
			t.Errorf("%v leaves, the next one after %v", w, after)
		}
		time.Sleep(after)
		if w, _ = a.Expired(false); w == nil || w.Call != 2 {
			t.Errorf("%v leaves first", w)
		}
		if w, after = a.Expired(false); w != nil || after != longest/16 {
			t.Errorf("%v leaves, the next one after %v", w, after)
		}
		for _, want := range []int{3, 4, 5} {
			if w, _ = a.Expired(true); w == nil || w.Call != want {
				t.Errorf("%v leaves, want %d", w, want)
			}
		}
		if w, after = a.Expired(true); w != nil || after != 0 {
			t.Errorf("%v leaves an empty queue, the next one after %v", w, after)
		}
	})
}

// Of all calls of a full queue only the first one has Expired called, so that there is one timer,
// and the first one after the queue was found empty.
func TestOneWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(all, all, longest)
		c := joined(a, 1, 1)[0]
		watch := func(want bool) {
			t.Helper()
			if c.Await(&Waiter{}) != want {
				t.Errorf("a call has Expired called: %t", !want)
			}
		}
		watch(true)
		watch(false)
		a.Expired(false)
		watch(false)
		for range 3 {
			a.Expired(true)
		}
		watch(false)
		a.Expired(true)
		a.Expired(true)
		watch(true)
		a.Expired(true)
	})
}

// Waiting for a place allocates nothing.
func TestWaitingAllocates(t *testing.T) {
	a := New(all, all, longest)
	conns := joined(a, 3, 3)
	waiters := make([]Waiter, len(conns))
	round := func() {
		for i, c := range conns {
			c.Await(&waiters[i])
		}
		for range conns {
			a.Next()
		}
		for _, c := range conns {
			c.Give(Calls, 1)
			c.Take(Waiting, 1)
		}
	}
	for _, c := range conns {
		c.Take(Waiting, 1)
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
