package memory

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/rdmactor/rdmactor/eventloop"
)

// claim is a message that waits for memory, or has it.
type claim struct {
	b       *Budget
	n       int
	granted bool
	due     int // the turn of its return
	came    int
	before  int // the waiters when it came
}

func (c *claim) Claim() (want, held int) { return c.n, 0 }

func (c *claim) Fair(int) bool { return true }

func (c *claim) Grant() { c.take() }

func (c *claim) take() {
	c.granted = true
	c.b.lendLarge(c.n)
	c.b.Free -= c.n
}

func (c *claim) back() {
	c.b.unlendLarge(c.n)
	c.b.returnFree(c.n)
}

// paperBudget returns a budget whose turns the test takes.
func paperBudget(t *testing.T, bytes int) *Budget {
	el, err := eventloop.New(eventloop.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = el.Shutdown(t.Context()) })
	b := NewBudget(el, bytes, bytes/4, bytes/2)
	return b
}

func (b *Budget) ask(n int) *claim {
	c := &claim{b: b, n: n}
	if b.Admits(c) {
		c.take()
	}
	return c
}

// One that wants more than there is does not stop the smaller ones behind it, even if it never
// gets it; and it gets it as soon as the memory before it is returned, whatever follows it.
func TestWhoWaitsIsInNobodysWay(t *testing.T) {
	const all = 1 << 20
	b := paperBudget(t, all)
	kept := b.ask(all / 2)
	big := b.ask(all / 2)
	var small []*claim
	for range 100 {
		small = append(small, b.ask(all/64))
	}
	passed := 0
	for len(small) > 0 {
		b.Run(0)
		if !small[0].granted {
			t.Fatalf("a small one waits behind a large one, after %d", passed)
		}
		b.ask(all / 64) // there are always others
		passed++
		small[0].back()
		small = small[1:]
	}
	if !kept.granted || big.granted {
		t.Fatal("the large one has memory that is another's")
	}
	kept.back()
	b.Run(0)
	if !big.granted {
		t.Errorf("it waits, with %d bytes handed out to others", b.lentBytes(0))
	}
}

// The part kept for arenas is kept besides retained arena memory: owners of that, and of large
// messages, leave it together, too.
func TestLargeLeaveWhatIsKept(t *testing.T) {
	const all, one = 1 << 20, 1 << 14
	for _, used := range []int{0, all / 8, all / 4, 3 * all / 8, all / 2} {
		b := paperBudget(t, all)
		b.Retained = func() int { return used }
		for range used / one {
			if !b.takeSmall(one) {
				t.Fatalf("with %d bytes in use there are no more", b.small)
			}
		}
		n := 0
		for b.ask(one).granted {
			n += one
		}
		left := 0
		for b.takeSmall(one) {
			left += one
		}
		if want := min(all/4, all/2-used); left < want {
			t.Errorf("with %d bytes retained, and %d of large messages, there are %d for others, want %d", used, n, left, want)
		}
		if n < all/2 {
			t.Errorf("with %d bytes retained there are %d for large messages, want half", used, n)
		}
	}
}

// Also while owners retain much of arenas, smaller claims pass one that cannot be served.
func TestSmallerPassBesideWhatIsRetained(t *testing.T) {
	const all = 1 << 20
	b := paperBudget(t, all)
	b.takeSmall(all / 4)
	b.Retained = func() int { return all / 4 }
	b.ask(all / 4)
	if b.ask(all / 2).granted {
		t.Fatal("there is more memory than there is")
	}
	for i := range 100 {
		c := b.ask(all / 64)
		if b.Run(0); !c.granted {
			t.Fatalf("small one %d waits behind a large one", i)
		}
		c.back()
	}
}

// However messages of all sizes come and go: no claim exceeds the free memory, and each is served
// when the earlier memory that it waits for was returned.
func TestMemoryIsHandedOutInTime(t *testing.T) {
	const all, holds = 1 << 20, 20
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 6))
		b := paperBudget(t, all)
		var live, waiting []*claim
		small := 0
		for now := range 3000 {
			for range rng.IntN(4) {
				c := b.ask(1 + rng.IntN(all/2>>rng.IntN(12)))
				c.came, c.before = now, len(waiting)
				waiting = append(waiting, c)
			}
			if n := rng.IntN(all / 2); rng.IntN(3) == 0 { // what arenas have changes too
				for b.small > n && small > 0 {
					b.unuseSmall(all / 16)
					b.returnFree(all / 16)
					small--
				}
				for b.small < n && b.canRegister(all/16) {
					b.useSmall(all / 16)
					b.Free -= all / 16
					small++
				}
			}
			if b.feeding {
				b.Run(0)
			}
			if b.Free < 0 || b.lentBytes(0)+b.small != all-b.Free || b.small > b.most || b.lentBytes(0) > all-b.keep {
				t.Fatalf("seed %d: %d bytes free, %d large, %d small, of %d", seed, b.Free, b.lentBytes(0), b.small, all)
			}
			keep := waiting[:0]
			for _, c := range waiting {
				switch {
				case c.granted:
					c.due = now + rng.IntN(holds)
					live = append(live, c)
				default:
					keep = append(keep, c)
				}
			}
			waiting = keep
			still := live[:0]
			for _, c := range live {
				if c.due <= now {
					c.back()
				} else {
					still = append(still, c)
				}
			}
			live = still
			// Those before it in line take at most as long as the return of memory takes, each,
			// and so does a claim that passes it.
			for _, c := range waiting {
				if took := now - c.came; took > 2*holds*(c.before+1) {
					t.Fatalf("seed %d: %d bytes have waited for %d turns, with %d before them", seed, c.n, took, c.before)
				}
			}
		}
	}
}
