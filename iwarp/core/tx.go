package core

import (
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// iovMax is how many slices one writev takes (UIO_MAXIOV).
const iovMax = 1024

// ctl is a set of FPDUs to send besides the application's.
type ctl uint8

const (
	ctlWrite ctl = 1 << iota // zero-length Write: ready-to-receive, or the kick
	ctlRead                  // zero-length Read Request: ready-to-receive
)

// tx is the sending side.
type tx struct {
	raw    []byte    // goes first: an MPA frame, or at the end what is left of an FPDU and a Terminate
	batch  *batch    // FPDUs made and not yet taken by the socket; nil: none
	staged uint64    // stream offset behind the batch's last byte
	sent   uint64    // stream offset of the next byte the socket takes
	next   int       // index in sq of the first send not completely staged
	keep   int       // finishing without drain: how many sends are still to go
	msn    uint32    // of the next Send
	held   bool      // responder: nothing may be sent yet
	late   bool      // responder: when last looked, the peer did not have the Reply
	wireAt time.Time // responder: hold-off ends; initiator: next kick
	kicks  uint8     // kicks armed so far; kicksOver: no more
	ctl    ctl
	drain  bool // finishing: everything queued still goes

	// Reads of ours: requests that are staged and not yet answered. The oldest is sq.at(oldRead), unless it is the
	// ready-to-receive Read.
	readMSN  uint32 // of the next Read Request
	readsOut int
	oldRead  int

	within  bool               // the last FPDU staged was not its message's last
	owed    ring[readResponse] // to the peer's Reads, in order
	sendDue bool               // a Read Response was just finished: a send's turn
	lost    *fault             // the memory of a Read Response is gone in its middle: Timeout tells
}

// drop forgets what is staged or owed, raw excepted. Work requests are not touched.
func (t *tx) drop() {
	t.batch.release()
	t.batch, t.ctl, t.owed, t.lost, t.wireAt = nil, 0, ring[readResponse]{}, nil, time.Time{}
}

// partial is a copy of what must still go out before the stream is at the start of an FPDU again.
func (t *tx) partial() []byte {
	if t.raw != nil {
		return append([]byte(nil), t.raw...)
	}
	if t.batch == nil {
		return nil
	}
	return t.batch.head(t.batch.boundary(t.sent) - t.sent)
}

// Pending is true while Gather has something, or finds that the memory of a Read Response is gone, which Timeout then tells.
func (c *Conn) Pending() bool {
	if c.closeNow {
		return false
	}
	return c.tx.raw != nil || c.tx.batch != nil || c.sendable()
}

// sendable is true if an FPDU could be staged.
func (c *Conn) sendable() bool {
	live := c.state == stAccepted || c.state == stOpen || c.state == stFinishing
	if !live || c.tx.held || c.tx.raw != nil || c.tx.lost != nil {
		return false
	}
	return c.tx.ctl != 0 || c.tx.owed.n > 0 || c.nextSend() != nil
}

// nextSend is the send whose FPDU may be made next. A Read waits while as many are outstanding as the peer takes, a fenced work
// request for all of them; what is behind waits too.
func (c *Conn) nextSend() *send {
	if c.tx.next >= c.sendLimit() {
		return nil
	}
	s := c.sq.at(c.tx.next)
	out := c.readsPending()
	if out == 0 || s.begun || s.flags&verbs.Fence == 0 && (s.op != verbs.Read || out < int(c.ord)) {
		return s
	}
	return nil
}

// readsPending is how many Reads of ours the peer has not answered.
func (c *Conn) readsPending() int {
	if c.rx.rtrOut {
		return c.tx.readsOut + 1
	}
	return c.tx.readsOut
}

// sendLimit is how many of the queued sends may go.
func (c *Conn) sendLimit() int {
	if c.state == stFinishing && !c.tx.drain {
		return c.tx.keep
	}
	return c.sq.n
}

// Gather appends to dst the slices to write next, as many as fit cap(dst) (up to 1024 if dst has no room at all). With CRC in use that
// is FPDUs that fill a TCP segment, or the rest of them: let them have one of their own (sendmsg with MSG_EOR; see CRC and
// SetMaxSegment).
func (c *Conn) Gather(dst [][]byte) [][]byte {
	if c.closeNow {
		return dst
	}
	if c.tx.raw != nil {
		return append(dst, c.tx.raw)
	}
	c.stage()
	if c.tx.batch == nil {
		return dst
	}
	room := cap(dst) - len(dst)
	if room == 0 {
		room = iovMax
	}
	for _, p := range c.tx.batch.pending() {
		if room == 0 {
			break
		}
		dst = append(dst, p)
		room--
	}
	return dst
}

// Advance says that the socket took the first n bytes of what Gather gave: 0, when it is full.
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
		c.tx.batch.freeze()
	}
	c.finDeadline(now)
}

// completeSends completes what is done, in posting order: Sends and Writes when the socket took them, Reads when their data is here.
func (c *Conn) completeSends() {
	for c.sq.n > 0 {
		s := c.sq.at(0)
		if !s.done || s.end > c.tx.sent || s.op == verbs.Read && !s.answered {
			return
		}
		c.completeSend(verbs.StatusSuccess)
	}
}

// cutDone flushes, after Disconnect, what is left once everything that had begun to go out is out: unanswered Reads too.
func (c *Conn) cutDone() {
	if c.state == stFinishing && !c.tx.drain && c.tx.batch == nil && c.tx.next >= c.tx.keep {
		c.rx.orphan(c.tx.readsOut)
		c.flushSends(verbs.StatusFlushed)
	}
}

// cutUnstarted takes back what is staged behind the message that has begun to go out, and flushes the other sends once that is
// complete.
func (c *Conn) cutUnstarted() {
	t := &c.tx
	cut := t.staged
	if t.batch != nil {
		cut = t.batch.messageEnd(t.sent)
	}
	t.keep = 0
	for t.keep < c.sq.n {
		if s := c.sq.at(t.keep); !s.begun || s.start >= cut {
			break
		}
		t.keep++
	}
	// A Read Response that has begun is finished too.
	answering := cut == t.staged && t.owed.n > 0 && t.owed.at(0).staged > 0
	for t.owed.n > 1 || t.owed.n == 1 && !answering {
		*t.owed.at(t.owed.n - 1) = readResponse{}
		t.owed.n--
	}
	if !answering {
		t.lost = nil
	}
	if b := t.batch; b != nil {
		for i := t.keep; i < t.next; i++ {
			if c.sq.at(i).op == verbs.Read { // its request is taken back
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

const kicksOver = 4

// kickAfter are the pauses before the kicks: 2, 20 and 200 ms after the first FPDU.
var kickAfter = [...]time.Duration{2 * time.Millisecond, 18 * time.Millisecond, 180 * time.Millisecond}

// armKick starts the kick timer with the first FPDU of an initiator. siw's responder can miss an FPDU that comes while it installs
// its receive callback, and looks again when more bytes come.
func (c *Conn) armKick(now time.Time) {
	if c.cfg.Initiator && c.tx.kicks == 0 && c.state == stOpen {
		c.tx.kicks = 1
		c.tx.wireAt = now.Add(kickAfter[0])
	}
}

// HoldOver is true when Timeout would end a responder's pause behind its Reply. See whether the
// peer has acknowledged that, else HoldOn.
func (c *Conn) HoldOver(now time.Time) bool {
	at := c.tx.wireAt
	return !c.cfg.Initiator && !at.IsZero() && !now.Before(at)
}

// HoldOn says that the peer has not acknowledged the Reply. What is sent now would come with it, so
// a whole pause follows the Reply that is sent again.
func (c *Conn) HoldOn(now time.Time) {
	c.tx.wireAt, c.tx.late = now.Add(holdOff), true
}

// wireTimeout ends the hold-off, or kicks.
func (c *Conn) wireTimeout(now time.Time) {
	c.tx.wireAt = time.Time{}
	switch {
	case c.cfg.Initiator:
	case c.tx.late: // the peer may have the Reply since just now
		c.tx.wireAt, c.tx.late = now.Add(holdOff), false
		return
	default:
		c.tx.held = false
		return
	}
	c.tx.ctl |= ctlWrite
	if int(c.tx.kicks) < len(kickAfter) {
		c.tx.wireAt = now.Add(kickAfter[c.tx.kicks])
	}
	c.tx.kicks++
}

// heard is called with every FPDU that was right: the peer is up.
func (c *Conn) heard() {
	if c.cfg.Initiator {
		if c.tx.kicks != kicksOver {
			if c.tx.kicks > 0 {
				c.tx.ctl &^= ctlWrite
			}
			c.tx.kicks, c.tx.wireAt = kicksOver, time.Time{}
		}
		return
	}
	if c.tx.held {
		c.tx.held, c.tx.wireAt = false, time.Time{}
	}
	if c.state == stAccepted {
		c.establish(nil)
	}
}
