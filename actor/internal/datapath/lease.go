package datapath

import (
	"sync/atomic"

	"github.com/rdmactor/rdmactor/verbs"
)

// Lease tracks the users of the bytes of memory for one-sided operations. They are the loop's, and
// there may be
//
//   - any number of grants and operations, through which the peer or the device reaches the bytes;
//   - one owner on another goroutine, while nothing else can reach them;
//   - any number of pins, by which other goroutines keep the bytes where they are.
//
// When the connection ends, memory that has an owner or a pin stays until the last of them is gone.
// Until then it counts against Limits.Memory, so a new connection may get none.
//
// The zero Lease is the loop's alone. Its methods are the loop's, but for Own, Disown and Unpin.
type Lease struct {
	bits atomic.Uint64

	// set before End
	kept func() // frees the memory, on the loop
	l    *Loop
}

// The parts of Lease.bits.
const (
	leaseReach = 1 // a grant or an operation
	leasePin   = 1 << 32
	leaseOwned = 1 << 62
	leaseGone  = 1 << 63

	leaseReached = leasePin - leaseReach
	leasePinned  = leaseOwned - leasePin
)

// Reach counts a grant or an operation. Not ok: the memory has an owner.
func (s *Lease) Reach() (ok bool) {
	for {
		b := s.bits.Load()
		if b&leaseOwned != 0 {
			return false
		}
		if s.bits.CompareAndSwap(b, b+leaseReach) {
			return true
		}
	}
}

// Unreach ends the effect of Reach.
func (s *Lease) Unreach() { s.bits.Add(^uint64(leaseReach - 1)) }

// Ownership is what Own has found.
type Ownership uint8

const (
	Owned     Ownership = iota // the caller is the owner, until Disown
	Reachable                  // the peer or the device may reach the bytes
	Taken                      // there is an owner, or a pin
	Gone
)

// Own makes the caller the owner, if the bytes have no other user. Any goroutine.
func (s *Lease) Own() Ownership {
	for {
		switch b := s.bits.Load(); {
		case b&leaseGone != 0:
			return Gone
		case b&(leaseOwned|leasePinned) != 0:
			return Taken
		case b != 0:
			return Reachable
		case s.bits.CompareAndSwap(0, leaseOwned):
			return Owned
		}
	}
}

// Disown ends the effect of Own. Any goroutine.
func (s *Lease) Disown() { s.dropPart(leaseOwned) }

// Pin counts a pin. Not ok: the memory is gone, or has an owner.
func (s *Lease) Pin() (ok bool) {
	for {
		b := s.bits.Load()
		if b&(leaseGone|leaseOwned) != 0 {
			return false
		}
		if s.bits.CompareAndSwap(b, b+leasePin) {
			return true
		}
	}
}

// Unpin ends the effect of Pin. Any goroutine.
func (s *Lease) Unpin() { s.dropPart(leasePin) }

func (s *Lease) dropPart(part uint64) {
	if b := s.bits.Add(^(part - 1)); b&leaseGone != 0 && b&(leaseOwned|leasePinned) == 0 {
		_ = s.l.el.Schedule(s) // refused after the loop's end: then it stays
	}
}

// Used reports whether the memory has an owner or a pin.
func (s *Lease) Used() bool { return s.bits.Load()&(leaseOwned|leasePinned) != 0 }

// Owned reports whether the memory has an owner.
func (s *Lease) Owned() bool { return s.bits.Load()&leaseOwned != 0 }

// Gone reports whether the memory is gone.
func (s *Lease) Gone() bool { return s.bits.Load()&leaseGone != 0 }

// Free marks memory that has neither an owner nor a pin as gone. Not ok: it has one.
func (s *Lease) Free() (ok bool) {
	for {
		b := s.bits.Load()
		if b&(leaseOwned|leasePinned) != 0 {
			return false
		}
		if s.bits.CompareAndSwap(b, b|leaseGone) {
			return true
		}
	}
}

// Refused takes Free back: the device still has the memory.
func (s *Lease) Refused() { s.bits.And(^uint64(leaseGone)) }

// markGone marks the memory as gone. While it is still in use, it is kept: free is called on the
// loop after the last use.
func (s *Lease) markGone(l *Loop, free func()) (kept bool) {
	s.l, s.kept = l, free
	if s.bits.Or(leaseGone)&(leaseOwned|leasePinned) == 0 {
		return false
	}
	l.Kept++
	return true
}

// Run frees the memory.
func (s *Lease) Run(int) (more bool) {
	s.l.Kept--
	s.kept()
	if s.l.Returned != nil {
		s.l.Returned()
	}
	return false
}

// LoopName names it in the loop's reports of stalls.
func (s *Lease) LoopName() string { return "memory that was given back" }

// region is memory for one-sided operations.
type region struct {
	mr    *verbs.MR
	lease *Lease
}
