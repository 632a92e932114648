package actor

import "slices"

// budget is how much of a loop's device memory may still be taken for one purpose, and who waits for some. Loop goroutine.
type budget struct {
	l       *loop
	free    int // bytes
	keep    int // of them for what cannot wait
	waiting []claimant
	feeding bool // Run is queued
	serving bool // Run is at work
	stocks  map[*stock]struct{}
}

func newBudget(l *loop, bytes, keep int) budget {
	return budget{l: l, free: bytes, keep: keep, stocks: make(map[*stock]struct{})}
}

// reclaim gives the devices back what is kept in case it is needed again, and reports whether there was anything.
func (b *budget) reclaim() (some bool) {
	for s := range b.stocks {
		some = s.reclaim() || some
	}
	return some
}

// claimant is what waits for memory: for one connection's large messages.
type claimant interface {
	// claim is how many bytes are wanted next, 0: none any more, and how many there are already.
	claim() (want, held int)
	// grant: what is wanted next can be taken.
	grant()
}

// give takes n bytes back.
func (b *budget) give(n int) {
	b.free += n
	b.feed()
}

// feed has those who wait looked after in a turn of their own, because the device may be in the middle of something.
func (b *budget) feed() {
	if len(b.waiting) > 0 && !b.feeding {
		b.feeding = true
		_ = b.l.el.Schedule(b) // refused after the loop's end only: nobody waits then
	}
}

// admits reports whether c may take what it wants now. Otherwise c waits, in its place, and is told.
func (b *budget) admits(c claimant) bool {
	if !b.serving && len(b.waiting) == 0 && b.fits(c) {
		return true
	}
	b.waiting = append(b.waiting, c)
	if b.serving || len(b.waiting) > 1 {
		b.feed() // those before it may not be in its way
	}
	return false
}

// fits reports whether there is memory for c. Who has some already may only have as much as it leaves to all others: so no few take it
// all. Many that have one message each can.
func (b *budget) fits(c claimant) bool {
	want, held := c.claim()
	return b.room(want, held) || b.reclaim() && b.room(want, held)
}

func (b *budget) room(want, held int) bool {
	left := b.free - b.keep - want
	return left >= 0 && (held == 0 || left >= held)
}

// Run serves those who wait, in order. One that has nothing yet and wants more than there is has the others behind it wait, or they would
// have it wait for ever.
func (b *budget) Run(int) (more bool) {
	b.feeding, b.serving = false, true
	waiting := b.waiting
	b.waiting = nil
	var kept []claimant
serve:
	for i, c := range waiting {
		want, held := c.claim()
		switch {
		case want == 0:
		case b.fits(c):
			c.grant()
		case held > 0:
			kept = append(kept, c)
		default:
			kept = append(kept, waiting[i:]...)
			break serve
		}
	}
	b.serving = false
	b.waiting = append(kept, b.waiting...)
	return false
}

// leave ends c's wait.
func (b *budget) leave(c claimant) {
	b.waiting = slices.DeleteFunc(b.waiting, func(other claimant) bool { return other == c })
	b.feed()
}

// LoopName names it in the loop's reports of stalls.
func (b *budget) LoopName() string { return "memory for large messages" }
