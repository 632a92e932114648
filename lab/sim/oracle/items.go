package oracle

import "time"

// Items judges the items that one side of a stream sends, which a call has opened: they come in
// order, once, before their end, and within the receiver's window.
type Items struct {
	c              *Call
	direction      uint64 // of Fill
	window, header int    // bytes
	lengths        []int
	sent, got      int
	ahead          int // bytes that were sent and not received
	done           bool
	how            string
}

// Items creates the ledger of the server's items. Their receiver's window is window bytes, and each
// item occupies header bytes more than its length.
func (c *Call) Items(window, header int) *Items {
	return &Items{c: c, direction: replies + 2 + c.number, window: window, header: header}
}

// Uploads creates the ledger of the client's items, like Items.
func (c *Call) Uploads(window, header int) *Items {
	return &Items{c: c, direction: uploads + c.number, window: window, header: header}
}

// Sending enters an item of n bytes that is about to be sent, and returns its bytes.
func (s *Items) Sending(now time.Duration, n int) []byte {
	if s.done {
		s.c.l.Fail("%v: %s sends an item after its end", now, s.c.name)
	}
	p := make([]byte, n)
	Fill(p, s.direction, uint64(len(s.lengths)))
	s.lengths = append(s.lengths, n)
	return p
}

// Sent enters that the item was accepted. The receiver may be taking one that it has not entered
// yet.
func (s *Items) Sent(now time.Duration) {
	n := s.header + s.lengths[s.sent]
	s.sent++
	most := 0
	for _, l := range s.lengths[:s.sent] {
		most = max(most, s.header+l)
	}
	if s.ahead >= s.window+most {
		s.c.l.Fail("%v: %s: an item goes when %d bytes are ahead of its receiver, whose window is %d", now, s.c.name, s.ahead, s.window)
	}
	s.ahead += n
}

// Finished enters that the sender ends its items: successfully if how is empty, or with that error.
func (s *Items) Finished(how string) { s.done, s.how = true, how }

// Item enters an item that was received.
func (s *Items) Item(now time.Duration, p []byte) {
	l := s.c.l
	if s.got == len(s.lengths) {
		l.Fail("%v: %s: an item of %d bytes is received, and %d were sent", now, s.c.name, len(p), s.got)
		return
	}
	i := s.got
	s.got++
	switch w := wrongIndex(p, s.direction, uint64(i)); {
	case len(p) != s.lengths[i]:
		l.Fail("%v: %s: item %d has %d bytes, %d were sent", now, s.c.name, i, len(p), s.lengths[i])
	case w >= 0:
		l.Fail("%v: %s: byte %d of item %d is wrong", now, s.c.name, w, i)
	}
	s.ahead -= s.header + len(p)
}

// Ended enters that the receiver has seen that end: success if how is empty, or that error.
func (s *Items) Ended(now time.Duration, how string) {
	switch l := s.c.l; {
	case !s.done:
		l.Fail("%v: %s: its end is received, and its sender goes on", now, s.c.name)
	case s.how != how:
		l.Fail("%v: %s: its end is received as %q, and was %q", now, s.c.name, how, s.how)
	case s.got < s.sent:
		l.Fail("%v: %s: its end is received after %d items, and %d were sent", now, s.c.name, s.got, s.sent)
	}
}
