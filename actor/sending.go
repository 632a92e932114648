package actor

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// submit takes a Send of the owner's, or of whoever has the PID.
func (c *conn) submit(s *outgoing) {
	switch limit := c.l.limits.Queue; {
	case !c.taking():
		err := c.notSending()
		c.unsent++
		c.up.SendRefused(s, err, err)
		s.recycle()
	case s.len() > c.maxSend:
		c.up.SendFailed(s, fmt.Errorf("%d bytes, and the peer takes %d: %w (%w)", s.len(), c.maxSend, ErrTooLarge, unix.EMSGSIZE))
		c.unsent++
	case c.queue.len() > 0 || c.ops.n > 0 || !c.ready() || !c.readyFor(s):
		if c.queue.len() >= limit {
			c.full = true
			c.unsent++
			err := fmt.Errorf("%d messages wait for the peer: %w (%w)", limit, ErrQueueFull, unix.ENOBUFS)
			c.up.SendRefused(s, ErrQueueFull, err)
			s.recycle()
			return
		}
		c.seq++
		s.seq = c.seq
		c.queue.push(s)
		c.l.shares.again(c)
		c.observe()
	default:
		c.post(s, false)
	}
}

// tryPost is submit for who keeps s when device or peer have no room for it now.
func (c *conn) tryPost(s *outgoing) (posted bool) {
	switch {
	case s.buf == nil || !c.taking():
		return false
	case c.queue.len() > 0 || !c.ready():
		c.awake()
		return false
	}
	left, class := c.left, s.class
	s.taken, s.class = true, -1 // one that fails does not go to the pool
	c.submit(s)
	s.class = class
	if c.left > left {
		return true
	}
	if c.queue.len() > 0 {
		c.queue.pop()
	}
	c.awake()
	c.retry()
	return false
}

// awake has Writable reported at the next news of the device or of the peer.
func (c *conn) awake() {
	c.full = true
	c.l.shares.again(c)
}

// Why a Send failed; errors.Is finds them in *SendFailed.
var (
	// ErrQueueFull: the peer does not keep up, and the connection's queue, or its mailbox, has no
	// room. Wait for *Writable.
	ErrQueueFull = errors.New("the connection's send queue is full")
	// ErrTooLarge: the message is larger than the peer takes (Established.MaxMessage).
	ErrTooLarge = errors.New("message too large")
	// ErrFlushed: the connection ended first. Closed says how many may have arrived nevertheless.
	ErrFlushed = errors.New("the connection ended first")
)

// flushed is what becomes of messages when their connection ends.
func flushed() error { return errFlushed }

var (
	errNoConn  = fmt.Errorf("not connected: wait for Established (%w)", unix.ENOTCONN)
	errFlushed = fmt.Errorf("%w (%w)", ErrFlushed, unix.ENOTCONN)
	errClosing = fmt.Errorf("the connection is being closed: %w (%w)", ErrFlushed, unix.ESHUTDOWN)
)

func (c *conn) notSending() error {
	switch {
	case c.closing() || c.parting != staying:
		return errClosing
	case c.over():
		return flushed()
	}
	return errNoConn
}

// outlook collects what next decides by.
func (c *conn) outlook() outlook {
	o := outlook{depth: c.depth, posted: c.flight.len(), silent: c.flight.quiet, window: math.MaxUint32}
	if c.mode == modeMessages {
		o.window = c.session.Window()
	}
	if o.ops = c.ops.n > 0; o.ops {
		o.opSeq = c.ops.first.seq
	}
	if n := c.queue.len(); n > 0 {
		s := c.queue.at(0)
		o.sends, o.sendSeq, o.alone = true, s.seq, s.notify
		o.ready = o.room() && c.readyFor(s)
		o.inline = n > 1 && len(c.queue.at(1).buf) <= c.d.attr.MaxInline
	}
	return o
}

// ready reports whether a message that does not wait may be handed to the device now.
func (c *conn) ready() bool {
	return c.flight.len() < c.depth && (c.mode != modeMessages || c.session.Window() > 0)
}

// readyFor reports whether s may be handed to the device when messages may: a large one needs more.
func (c *conn) readyFor(s *outgoing) bool { return s.len() <= c.eager || c.offerable(s) }

// offerable reports whether s may be offered now.
func (c *conn) offerable(s *outgoing) bool {
	if c.out == nil {
		c.out = newOffers(c)
	}
	return c.out.ready(s)
}

// post hands a message to the device. Not ok: it has no room, and the message is back in the queue.
func (c *conn) post(s *outgoing, quiet bool) (ok bool) {
	b := s.buf[headerRoom:]
	if c.mode == modeMessages {
		b = s.buf
		c.session.Header(wire.TypeData, 0).Put(b)
	}
	var err error
	typ := wire.TypeData
	if s.len() <= c.eager {
		err = c.d.post(c, s, b, quiet)
	} else {
		typ = wire.TypeOffer
		err = c.out.post(s)
	}
	switch {
	case err == nil:
		c.left++
		c.flight.quiet++
		if !quiet {
			c.flight.quiet = 0
		}
		if c.mode == modeMessages {
			c.session.Sent(typ, 0)
			c.observe()
		}
	case errors.Is(err, errNoRoom), errors.Is(err, unix.ENOMEM) && c.flight.len() > 0:
		c.queue.unpop(s) // a completion makes room
		c.l.shares.again(c)
		c.retry()
		return false
	case errors.Is(err, unix.ENOMEM): // no completion will make room, but the connection lives on
		c.unsent++
		c.up.SendFailed(s, err)
	default:
		c.unsent++
		c.up.SendFailed(s, fmt.Errorf("%w: %w", ErrFlushed, err))
		c.refused(verbs.Send, err)
	}
	return true
}

// pump hands the device what it and the credits have room for. A full send queue is refilled in parts, that is in runs.
func (c *conn) pump() {
	if !c.sends() {
		return
	}
	if c.ops.n > 0 {
		c.update() // what carries no count must not keep the peer waiting for it
	}
	room := c.depth - c.flight.len()
	for room >= part(c.depth) && !c.over() && c.postNext() {
	}
	if c.full && !c.over() && c.queue.len() <= c.l.limits.Queue/2 {
		c.full = false
		c.up.Writable()
	}
	if c.closing() && c.queue.len() == 0 {
		c.session.Finish() // behind the last message
	}
	c.update()
	if c.out != nil {
		c.out.settle()
	}
	c.checkDrained()
}

// postNext hands to the device what goes next. False: nothing may go now.
func (c *conn) postNext() bool {
	o := c.outlook()
	switch next := o.step(); next {
	case stepOp:
		return c.postOp(c.ops.pop())
	case stepSend, stepQuiet:
		if !c.renew(c.queue.at(0)) {
			return false
		}
		return c.post(c.queue.pop(), next == stepQuiet)
	}
	return false
}

// renew has a message that has waited be what it still should be. A Renew that does not return
// costs the connection, which would have a hole: not what the loop is at, which may be another's.
func (c *conn) renew(s *outgoing) (ok bool) {
	if s.renew == nil {
		return true
	}
	defer func() {
		if ok {
			return
		}
		c.up.RenewFailed(recover()) // which answers it with all that waits
	}()
	s.buf = s.buf[:headerRoom+min(len(s.renew(s.bytes())), s.len())]
	return true
}

// completed ends the posting of that number, and those before it, which have succeeded in silence.
func (c *conn) completed(number uint32, status verbs.Status) {
	var free outgoingChain
	for {
		p, ok := c.flight.pop(number)
		if !ok {
			break
		}
		if p.chunk != nil {
			p.chunk.arena.put(p.chunk)
		}
		switch s := p.send; {
		case p.op != nil:
			c.fetched(p.op, -1)
			p.op.who.Ended(c, p.op, opError(status))
		case s == nil:
		case status == verbs.StatusSuccess || c.flight.head != number+1:
			if s.notify {
				c.up.Sent(s)
			}
			free.add(s)
		case status == verbs.StatusFlushed:
			c.up.SendFailed(s, flushed())
		default:
			c.up.SendFailed(s, fmt.Errorf("%v: %w (%w)", status, ErrFlushed, unix.EIO))
		}
	}
	free.put()
	c.goOn()
	c.d.pump(c)
}

// abandon answers what is posted and the device did not flush with the queue pair. The memory stays the device's until it does.
func (c *conn) abandon() {
	for n := c.flight.head; n != c.flight.next; n++ {
		p := c.flight.at(n)
		if s := p.send; s != nil {
			p.send = nil
			s.class = -1 // not for another message: the device may be sending from it
			c.up.SendFailed(s, flushed())
		} else if p.op != nil {
			p.op.who.Abandoned(c, p.op)
		}
	}
}

// retryAfter is how long a device gets that has no room although nothing is under way whose end it would tell.
const retryAfter = 10 * time.Millisecond

// retry has what the device did not take tried again, if no completion will do that.
func (c *conn) retry() {
	if c.retrying || c.flight.quiet < c.flight.len() {
		return
	}
	c.retrying = true
	c.l.el.NewTimer(func() {
		c.retrying = false
		c.pump()
	}).Reset(retryAfter)
}
