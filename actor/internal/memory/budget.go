package memory

import (
	"container/list"
	"math/bits"
	"slices"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Budget bounds the device memory of a loop for one purpose, and queues claimants. Loop goroutine.
// Claimants have shares (fairshare.Fair). It is no fairshare.Queue: their order depends on the
// sizes of their messages, not on turns.
//
// Arenas may always have one part of it (keep), besides what owners retain of theirs (Retained),
// and at most another (most). The rest is for large messages, which wait in line. A message's class
// is the part of the whole that it needs: a half (there is room for one such besides the share of
// arenas), an eighth, a sixteenth, and so on. Only messages of smaller classes may overtake one
// that waits. All of these together may hold no more than the rest when the waiting one gets its
// memory: a quarter of the whole beside a half, an eighth beside an eighth, and so on. So the
// waiting message gets its memory as soon as the memory that was handed out before it is returned,
// whatever follows it. While that does not come back, because an owner keeps it, smaller messages
// go on. For that they have a sixteenth in any case: a message of nearly a half may also have to
// wait for what owners retain of arenas.
type Budget struct {
	el      *eventloop.Loop
	total   int          // bytes
	Free    int          // bytes not registered
	keep    int          // bytes always available to arenas
	most    int          // bytes that arenas may have
	small   int          // in use by arenas
	large   [classes]int // handed out for large messages
	waiting []Claimant
	feeding bool      // Run is queued
	serving bool      // Run is at work
	seen    int       // the result of forLarge when the claimants were last checked, or queued
	keepers list.List // of keeper

	// Retained is how many bytes of arenas owners retain that others are not to do without: the
	// kept part is kept besides these. nil: none. When there are fewer, Fewer is to be called.
	Retained func() int
}

// classes is how many there are. The last is of all that is smaller than the one before.
const classes = 16

// keeper is an arena or a cache that keeps registered memory in case it is needed again.
type keeper interface {
	// Reclaim returns idle memory to the device.
	Reclaim()
}

// NewBudget is a budget of so many bytes, of which arenas may have keep in any case, and most at
// most. Its turns are those of el.
func NewBudget(el *eventloop.Loop, bytes, keep, most int) *Budget {
	return &Budget{el: el, total: bytes, Free: bytes, keep: keep, most: most}
}

// sizeClass returns the class of a message of n bytes.
func (b *Budget) sizeClass(n int) int {
	return min(max(bits.Len(uint(b.total/n))-3, 0), classes-1)
}

// limitBeside returns the bytes that classes behind c may hold while one of c waits for n.
func (b *Budget) limitBeside(c, n int) int {
	left := b.total >> (c + 2)
	if c == 0 {
		left = min(left, max(b.forLarge()-n, b.total/16))
	}
	return left
}

// forLarge returns how many bytes large messages may have, with those they have.
func (b *Budget) forLarge() int {
	keep := b.keep
	if b.Retained != nil {
		keep = min(keep+b.Retained(), b.most)
	}
	return b.total - max(b.small, keep)
}

// Fewer notes that owners retain less (Retained). A steady stream of messages does not rescan the
// waiters.
func (b *Budget) Fewer() {
	if b.forLarge() > b.seen {
		b.scheduleRun()
	}
}

// Look checks the waiting claimants again: fairness has changed.
func (b *Budget) Look() { b.scheduleRun() }

// Reclaim returns the idle memory to the devices.
func (b *Budget) Reclaim() {
	if b.total-b.Free == b.small+b.lentBytes(0) {
		return
	}
	for e := b.keepers.Front(); e != nil; e = e.Next() {
		e.Value.(keeper).Reclaim()
	}
}

// canUse reports whether an arena may take n bytes more into use.
func (b *Budget) canUse(n int) bool { return n <= b.most-b.small }

// canRegister reports whether an arena may register n bytes more and take them into use. To make
// room it may have keepers give idle memory back.
func (b *Budget) canRegister(n int) bool {
	if !b.canUse(n) {
		return false
	}
	if n > b.Free {
		b.Reclaim()
	}
	return n <= b.Free
}

// useSmall notes that an arena uses n bytes.
func (b *Budget) useSmall(n int) { b.small += n }

// unuseSmall notes that an arena no longer uses n bytes.
func (b *Budget) unuseSmall(n int) {
	b.small -= n
	b.scheduleRun()
}

// takeSmall takes n bytes from what arenas may have. Not ok: there are none.
func (b *Budget) takeSmall(n int) (ok bool) {
	if !b.canRegister(n) {
		return false
	}
	b.Free -= n
	b.useSmall(n)
	return true
}

// giveSmall returns bytes of arenas.
func (b *Budget) giveSmall(n int) {
	b.unuseSmall(n)
	b.returnFree(n)
}

// TakeLarge notes that n bytes were registered and are in use for a large message. The caller has
// asked Admits.
func (b *Budget) TakeLarge(n int) {
	b.Free -= n
	b.lendLarge(n)
}

// GiveLarge returns bytes of large messages.
func (b *Budget) GiveLarge(n int) {
	b.unlendLarge(n)
	b.returnFree(n)
}

// Total is all of it, in bytes.
func (b *Budget) Total() int { return b.total }

// InUse is how many bytes are in use, and how many claimants wait for some.
func (b *Budget) InUse() (bytes, waiting int) { return b.small + b.lentBytes(0), len(b.waiting) }

// Spare returns how many bytes arenas may still take into use before they reach three quarters of
// their limit.
func (b *Budget) Spare() int { return b.most - b.most/4 - b.small }

// Most is how many bytes arenas can have.
func (b *Budget) Most() int { return b.most }

// lendLarge notes that n bytes are handed out for a large message.
func (b *Budget) lendLarge(n int) { b.large[b.sizeClass(n)] += n }

// unlendLarge takes back n bytes that were handed out for a large message.
func (b *Budget) unlendLarge(n int) {
	b.large[b.sizeClass(n)] -= n
	b.scheduleRun()
}

// Claimant waits for memory: for one connection's large messages.
type Claimant interface {
	// Claim is how many bytes are wanted next, 0: none, and how many it holds already.
	Claim() (want, held int)
	// Fair reports whether it may have so many, as far as it depends on whom they are for.
	Fair(want int) bool
	// Grant: the wanted bytes can be taken.
	Grant()
}

// returnFree takes back n bytes that were deregistered.
func (b *Budget) returnFree(n int) {
	b.Free += n
	b.scheduleRun()
}

// scheduleRun schedules Run. It does not call it, because the caller still works on what gives the
// memory back. If Run is at work, those whom it has looked at are to be looked at again.
func (b *Budget) scheduleRun() {
	if (len(b.waiting) > 0 || b.serving) && !b.feeding {
		b.feeding = true
		_ = b.el.Schedule(b) // refused after the loop's end only: no claimant waits then
	}
}

// Admits reports whether c may take its wanted bytes now. Otherwise c waits, in its place, and is
// notified (Claimant.Grant).
func (b *Budget) Admits(c Claimant) bool {
	if want, held := c.Claim(); !b.serving && len(b.waiting) == 0 && c.Fair(want) && b.hasMemory(want, held) {
		return true
	}
	b.waiting = append(b.waiting, c)
	b.seen = b.forLarge()
	if b.serving || len(b.waiting) > 1 {
		b.scheduleRun() // those before it may not be in its way
	}
	return false
}

// hasMemory reports whether there is memory. A claimant that holds some already may have no more
// than it then leaves to all others, so a few cannot take it all. Many with one message each can.
func (b *Budget) hasMemory(want, held int) bool {
	if left := b.forLarge() - b.lentBytes(0) - want; !fairshare.Fair(held, 0, left, 0, 1) {
		return false
	}
	if want > b.Free {
		b.Reclaim()
	}
	return true
}

// lentBytes returns the bytes handed out for messages of class c and smaller ones.
func (b *Budget) lentBytes(c int) (n int) {
	for _, m := range b.large[c:] {
		n += m
	}
	return n
}

// Run serves the waiting claimants in order. It skips, without holding up those behind, claimants
// that wait only for their own memory to come back, and those that it would not be fair to serve
// now.
func (b *Budget) Run(int) (more bool) {
	b.feeding, b.serving, b.seen = false, true, b.forLarge()
	waiting := b.waiting
	b.waiting = nil
	var kept []Claimant
	var before ahead
	for _, c := range waiting {
		want, held := c.Claim()
		switch {
		case want == 0:
		case !c.Fair(want):
			kept = append(kept, c)
		case before.mayPass(b, want) && b.hasMemory(want, held):
			c.Grant()
		default:
			kept = append(kept, c)
			if held == 0 {
				before.addWaiting(b, want)
			}
		}
	}
	b.serving = false
	b.waiting = append(kept, b.waiting...)
	return false
}

// ahead summarizes the waiting claimants before one.
type ahead struct {
	want [classes]int // of the first of each class; 0: none waits
	end  int          // behind the last class with a waiter
}

// mayPass reports whether one that wants n bytes may pass.
func (a *ahead) mayPass(b *Budget, n int) bool {
	if b.sizeClass(n) < a.end {
		return false
	}
	for c, want := range a.want[:a.end] {
		if want > 0 && b.lentBytes(c+1)+n > b.limitBeside(c, want) {
			return false
		}
	}
	return true
}

// addWaiting adds one that wants n bytes.
func (a *ahead) addWaiting(b *Budget, n int) {
	c := b.sizeClass(n)
	if a.want[c] == 0 {
		a.want[c] = n
	}
	a.end = max(a.end, c+1)
}

// Leave ends c's wait.
func (b *Budget) Leave(c Claimant) {
	b.waiting = slices.DeleteFunc(b.waiting, func(other Claimant) bool { return other == c })
	b.scheduleRun()
}

// LoopName names it in the loop's reports of stalls.
func (b *Budget) LoopName() string { return "memory for large messages" }
