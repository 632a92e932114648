package memory

import (
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Sources counts, by peer address, the memory into which large messages are being read. Such memory
// is occupied for as long as the peer takes to send the bytes. Loop goroutine. It is no
// fairshare.Shares: an address has a fixed part, and less while it is suspect.
//
// One address may have a quarter of the budget being filled, or one larger message. If a connection
// ends with a message half read, others have waited for that memory in vain. Its address is then
// suspect for wastePays times as long as that took, and all suspects together may have an eighth of
// the budget. So a peer that offers messages, does not answer the Reads, and comes back again and
// again, takes memory from others for at most one part in wastePays+1 of the time.
type Sources struct {
	el      *eventloop.Loop
	budget  *Budget
	by      map[netip.Addr]source
	dubious int // bytes being filled from those that are suspect
}

type source struct {
	filling int       // bytes
	dubious int       // the part of these that is in doubt, in the sum
	suspect time.Time // the end of the suspicion
}

const wastePays = 4

// NewSources counts, by addresses, the bytes of b that are being filled. Its time is that of el.
func NewSources(el *eventloop.Loop, b *Budget) Sources { return Sources{el: el, budget: b} }

// Remembered is of how many addresses something is known, and how many bytes are being filled from
// those that are suspect.
func (s *Sources) Remembered() (addrs, dubious int) { return len(s.by), s.dubious }

// Lets reports whether n more bytes may be filled from addr.
func (s *Sources) Lets(addr netip.Addr, n int) bool {
	src, total := s.by[addr], s.budget.total
	if !s.isSuspect(src) {
		return src.filling == 0 || src.filling+n <= total/4
	}
	return s.dubious+n <= total/8
}

func (s *Sources) isSuspect(src source) bool {
	return !src.suspect.IsZero() && s.el.Now().Before(src.suspect)
}

// Fill notes that n bytes are being filled from addr.
func (s *Sources) Fill(addr netip.Addr, n int) {
	src := s.by[addr]
	src.filling += n
	s.setSource(addr, src)
}

// Filled notes that the bytes have arrived, or will not.
func (s *Sources) Filled(addr netip.Addr, n int) { s.Fill(addr, -n) }

// Wasted notes that a connection has ended that had memory for d and has not filled it.
func (s *Sources) Wasted(addr netip.Addr, d time.Duration) {
	src := s.by[addr]
	if until := s.el.Now().Add(wastePays * d); until.After(src.suspect) {
		src.suspect = until
		s.setSource(addr, src)
		s.el.AfterFunc(wastePays*d, func() { s.setSource(addr, s.by[addr]) })
	}
}

// setSource stores the state of addr, and wakes claimants that it may have delayed.
func (s *Sources) setSource(addr netip.Addr, src source) {
	s.dubious -= src.dubious
	if src.dubious = 0; s.isSuspect(src) {
		src.dubious = src.filling
	}
	s.dubious += src.dubious
	switch {
	case src.filling == 0 && !s.isSuspect(src):
		delete(s.by, addr)
	case s.by == nil:
		s.by = map[netip.Addr]source{addr: src}
	default:
		s.by[addr] = src
	}
	s.budget.scheduleRun()
}
