package main

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

const (
	// pace is how many lines of one address are handled per second, and burst how many in a row. A
	// line that makes more work counts as several. Lines beyond that wait at their sender.
	pace  = 1000
	burst = 100
	// work is how many bytes, read or written, count as one more line. Each delivery counts as
	// perLine bytes more than its text has.
	work     = 8 << 10
	perLine  = 256
	forgiven = 2 * burst * time.Second / pace // after which no address owes anything
	// places is the maximum number of connections. One address may have as many as are left.
	places = 4096
)

// source is an address that connections come from. Its connections share one pace and take turns,
// so an address gains nothing by opening more of them.
type source struct {
	addr  netip.Addr
	pace  *rate.Limiter
	peers int
	turns []*peer // connections with unread lines, in order
	waits bool    // a resume is scheduled
}

// source returns the source of an address, and creates it if necessary.
func (s *server) source(addr netip.Addr) *source {
	src := s.sources[addr]
	if src == nil {
		src = &source{addr: addr, pace: rate.NewLimiter(pace, burst)}
		s.sources[addr] = src
	}
	return src
}

// wait returns how long the source's next line has to wait.
func (src *source) wait(now time.Time) time.Duration {
	missing := 1 - src.pace.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return max(time.Duration(missing*float64(time.Second/pace)), time.Second/pace)
}

// pay charges the source for a line after it was handled and its cost is known.
func (src *source) pay(now time.Time, bytes int) {
	src.pace.ReserveN(now, min(1+bytes/work, burst))
}

// next returns the connection whose turn it is. nil: none has a line.
func (src *source) next() *peer {
	for len(src.turns) > 0 {
		p := src.turns[0]
		src.turns = src.turns[1:]
		if len(p.retained) > 0 { // else its connection is closed
			return p
		}
	}
	src.turns = nil
	return nil
}
