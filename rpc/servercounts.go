package rpc

import "github.com/rdmactor/rdmactor/rpc/internal/wire"

// connCounts has the counters of a server's connection.
type connCounts struct {
	// indexed by methodCounts.index, for declared methods; out.mu, and only the loop sets it
	tallies []*tally
	// counts of the OnLoop handler that is being called, or is about to be; out.mu. Its call counts
	// as begun when it ends, to avoid another lock of out.mu
	onLoop *methodCounts
	summed uint64 // the last reading that included tallies; out.mu
}

// addTally adds the tally of a method that was declared. It is called on the loop.
func (c *serverConn) addTally(h *handler) {
	if h == nil {
		return
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	i := h.counts.index
	for len(c.tallies) <= i {
		c.tallies = append(c.tallies, nil)
	}
	if c.tallies[i] == nil {
		c.tallies[i] = new(tally)
	}
}

// tallyOf returns the tally of a handler's method; nil: the connection has ended. It is called on
// the loop, or with out.mu locked.
func (c *serverConn) tallyOf(h *handler) *tally {
	if i := h.counts.index; i < len(c.tallies) {
		return c.tallies[i]
	}
	return nil
}

// begunLocked counts a call that waits for a worker, or for the rest of its request.
func (c *serverConn) begunLocked(call *serverCall) {
	call.begun = true
	if t := c.tallyOf(call.h); t != nil {
		t.begun++
		t.received += uint64(call.size)
		c.timeCall(call, t.begun)
	}
}

// timeCall times the nth call, if it is one that is timed. It is called on the loop.
func (c *serverConn) timeCall(call *serverCall, n uint64) {
	if call.weight = timedWeight(n); call.weight > 0 {
		call.began = c.arrivalTime()
	}
}

// sentLocked counts an item.
func (c *serverConn) sentLocked(h *handler, n int) {
	if t := c.tallyOf(h); t != nil {
		t.items++
		t.sent += uint64(n)
	}
}

// endedLocked counts the end of a call whose answer has sent bytes. Not counted: the connection
// ended before.
func (c *serverConn) endedLocked(call *serverCall, code Code, sent int) (counted bool) {
	if !call.begun {
		c.onLoop = nil
	}
	t := c.tallyOf(call.h)
	if t == nil {
		return false
	}
	t.sent += uint64(sent)
	call.endIn(t, code)
	return true
}

// endIn counts the end of a call.
func (call *serverCall) endIn(t *tally, code Code) {
	if !call.begun {
		t.begun++
		t.received += uint64(call.size)
	}
	t.countEnd(code)
}

// countEnd counts the end of a call by its outcome. counted: endedLocked has counted it already.
func (s *Server) countEnd(call *serverCall, o *outcome, counted bool) {
	m := call.h.counts
	m.countFailure(o.code)
	switch {
	case o.flags&wire.FlagRefused == 0:
	case o.code == CodeOverloaded:
		m.waitedOut.Add(1)
	default:
		m.late.Add(1)
	}
	if !counted {
		var t tally
		call.endIn(&t, o.code)
		s.ledger.keepTally(m, &t, 0)
		s.ledger.settleKept()
	}
}

// keepCounts keeps the counts of an ended connection.
func (s *Server) keepCounts(c *serverConn) {
	c.out.mu.Lock()
	for _, m := range append(s.ledger.allMethods(), &s.ledger.unknown) {
		if m.index < len(c.tallies) && c.tallies[m.index] != nil {
			s.ledger.keepTally(m, c.tallies[m.index], c.summed)
		}
	}
	c.tallies, c.onLoop = nil, nil
	c.out.mu.Unlock()
	s.ledger.settleKept()
}
