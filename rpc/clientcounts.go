package rpc

import "time"

// declared is a method that a connection of a client has declared.
type declared struct {
	counts *methodCounts
	tally
}

// declaredLocked returns a method that was declared. It stays where it is until the next one is.
func (l *table) declaredLocked(m *method) *declared { return &l.methods[l.numbers[m.index]-1] }

// beginLocked counts a call whose method was declared.
func (l *table) beginLocked(c *clientCall) {
	d := l.declaredLocked(c.m)
	d.begun++
	if c.weight, c.began = timedWeight(d.begun), (time.Time{}); c.weight > 0 || l.latency != nil {
		c.began = time.Now()
	}
	if l.latency != nil && !c.m.stream {
		l.latency.callBegun(c.began)
	}
}

// countLocked counts the end of a call for its caller, and releases the memory that the call keeps
// of ClientConfig.Memory. code 0: it was answered.
func (l *table) countLocked(c *clientCall, code Code) { l.countResultLocked(c, code, code) }

// countResultLocked is countLocked of a call whose result for its server, to eject it, has another
// code.
func (l *table) countResultLocked(c *clientCall, code, result Code) {
	d := l.declaredLocked(c.m)
	d.countEnd(code)
	took := c.stop(d.counts)
	d.counts.countFailure(code)
	l.beyond.Add(-int64(c.kept))
	c.kept = 0
	if l.latency == nil {
		return
	}
	if !c.m.stream {
		l.latency.callEnded(took, c.began.Add(took), code)
	}
	if c.m != watchHealth {
		l.ended(c.began, result)
	}
}

// keepCounts keeps the counts of a connection whose calls have all ended.
func (l *table) keepCounts() {
	l.out.mu.Lock()
	for i := range l.methods {
		l.ledger.keepTally(l.methods[i].counts, &l.methods[i].tally, l.summed)
	}
	l.methods = nil
	l.out.mu.Unlock()
	l.ledger.settleKept()
}

// unsentLocked calls yield with the counts of each call whose request was not handed to the
// connection.
func (l *table) unsentLocked(yield func(*methodCounts)) {
	for i := range l.slots {
		if s := &l.slots[i]; s.call != nil && s.number > l.out.handed {
			yield(l.declaredLocked(s.call.m).counts)
		}
	}
}

// countRefused counts a call that could not begin, and returns err, which is why.
func (c *Client) countRefused(m *method, err error) error {
	c.ledger.countsOf(m).refused[reasonOf(CodeOf(err))].Add(1)
	return err
}
