package rpc

import "sync/atomic"

// budget bounds the additional load by repetitions and second attempts: a tenth of the calls, and a
// reserve for bursts. So clients do not multiply the load of servers that fail because of it.
type budget struct{ left atomic.Int64 }

// Of a budget: a call pays in budgetShare, a repetition takes 1, and at most budgetReserve is kept.
// All in tenths.
const (
	budgetShare   = 1
	budgetCost    = 10
	budgetReserve = 100 * budgetCost
)

func (b *budget) fillReserve() { b.left.Store(budgetReserve) }

// addShare adds a call's share to the budget. A share that is lost to a call at the same moment
// does not matter.
func (b *budget) addShare() {
	if n := b.left.Load(); n < budgetReserve {
		b.left.CompareAndSwap(n, n+budgetShare)
	}
}

// takeRetry reports whether a repetition is within the budget.
func (b *budget) takeRetry() bool { return b.takeAbove(0) }

// takeToHedge reports whether a second attempt is: half of the reserve is for calls that have
// failed.
func (b *budget) takeToHedge() bool { return b.takeAbove(budgetReserve / 2) }

func (b *budget) takeAbove(least int64) bool {
	for {
		n := b.left.Load()
		if n < least+budgetCost {
			return false
		}
		if b.left.CompareAndSwap(n, n-budgetCost) {
			return true
		}
	}
}
