package core

import (
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// iovMax is how many slices one writev takes (UIO_MAXIOV).
const iovMax = 1024

// Pending is true while Gather has something, or finds that the memory of a Read Response is gone,
// which Timeout then reports.
func (c *Conn) Pending() bool {
	if c.closeNow {
		return false
	}
	return c.tx.raw != nil || c.tx.batch != nil || c.canStage()
}

// Gather appends to dst the slices to write next, as many as fit cap(dst) (up to 1024 if dst has no
// room at all). With CRC in use these are FPDUs that together fill one TCP segment, or the rest of
// them. Send them as a separate segment (sendmsg with MSG_EOR; see CRC and SetMaxSegment).
func (c *Conn) Gather(dst [][]byte) [][]byte {
	if c.closeNow {
		return dst
	}
	if c.tx.raw != nil {
		return append(dst, c.tx.raw)
	}
	c.stageFPDUs()
	if c.tx.batch == nil {
		return dst
	}
	room := cap(dst) - len(dst)
	if room == 0 {
		room = iovMax
	}
	for _, p := range c.tx.batch.pendingSlices() {
		if room == 0 {
			break
		}
		dst = append(dst, p)
		room--
	}
	return dst
}

// Advance reports that the socket took the first n of the gathered bytes; n is 0 when the socket is
// full.
func (c *Conn) Advance(now time.Time, n int) {
	if c.tx.raw != nil && n > 0 {
		k := min(n, len(c.tx.raw))
		n -= k
		if c.tx.raw = c.tx.raw[k:]; len(c.tx.raw) == 0 {
			c.tx.raw = nil
			c.rawSent(now)
		}
	}
	if n > 0 && c.tx.batch != nil {
		c.tx.sent += c.tx.batch.advance(n)
		c.armKick(now)
		if c.tx.sent == c.tx.staged {
			c.tx.batch.release()
			c.tx.batch = nil
		}
		c.completeSends()
		c.cutDone()
	}
	if c.crc && c.tx.batch != nil {
		c.tx.batch.freezePending()
	}
}

// cutDone flushes, after Disconnect, the remaining sends and unanswered Reads once every message
// that had begun is out.
func (c *Conn) cutDone() {
	if c.state == stFinishing && c.tx.batch == nil && c.tx.next >= c.tx.keep {
		c.rx.orphanReads(c.tx.readsOut)
		c.flushSends(verbs.StatusFlushed)
	}
}

// cutUnstarted drops the bytes staged behind the message that has begun to go out, and flushes the
// other sends once that is complete.
func (c *Conn) cutUnstarted() {
	t := &c.tx
	cut := t.staged
	if t.batch != nil {
		cut = t.batch.messageEnd(t.sent)
	}
	t.keep = 0
	for t.keep < c.sq.Len() {
		if s := c.sq.At(t.keep); !s.begun || s.start >= cut {
			break
		}
		t.keep++
	}
	// A Read Response that has begun is finished too.
	answering := cut == t.staged && t.owed.Len() > 0 && t.owed.At(0).staged > 0
	for t.owed.Len() > 1 || t.owed.Len() == 1 && !answering {
		t.owed.DropLast()
	}
	if !answering {
		t.lost = nil
	}
	if b := t.batch; b != nil {
		for i := t.keep; i < t.next; i++ {
			if c.sq.At(i).op == verbs.Read { // its request is taken back
				t.readsOut--
			}
		}
		t.within = t.within && cut == t.staged
		b.truncate(cut, cut-t.sent)
		if t.staged, t.next = cut, min(t.next, t.keep); cut == t.sent {
			b.release()
			t.batch = nil
		}
	}
	c.cutDone()
}
