package datapath

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// Submit takes a Send of the owner, or of another holder of the PID.
func (c *Conn) Submit(s *Outgoing) { c.submit(s, false) }

// submit is Submit. now: it may not wait for the end of the turn.
func (c *Conn) submit(s *Outgoing, now bool) {
	limit := c.l.limits.Queue
	bundled := !now && c.Session.Bundles() && s.bundled()
	if !bundled || c.queue.messages.Len() >= limit {
		c.flush()
	}
	switch {
	case !c.taking():
		err := c.NotSending()
		c.traffic.messageUnsent()
		c.up.SendRefused(s, err, err)
		s.Recycle()
	case s.Len() > c.sizes.largest:
		c.up.SendFailed(s, c.sizes.tooLarge(s.Len()))
		c.traffic.messageUnsent()
	case bundled && c.gathers():
		c.gather(s)
	case !c.queue.empty() || !c.ready() || !c.readyFor(s):
		if c.queue.messages.Len() >= limit {
			c.queue.refuse()
			c.traffic.messageUnsent()
			err := fmt.Errorf("%d messages wait for the peer: %w (%w)", limit, ErrQueueFull, unix.ENOBUFS)
			c.up.SendRefused(s, ErrQueueFull, err)
			s.Recycle()
			return
		}
		c.queue.pushMessage(s)
		c.creditWaitNeeded()
		c.l.Shares.again(c)
		c.observe()
	default:
		c.post(s, false)
	}
}

// TryPost is Submit, but leaves s with the caller if device or peer have no room for it now.
func (c *Conn) TryPost(s *Outgoing) (ok bool) {
	c.flush()
	switch {
	case s.buf == nil || !c.taking():
		return false
	case c.queue.messages.Len() > 0 || !c.ready():
		c.Awake()
		return false
	}
	posted, class := c.Posted(), s.class
	s.taken, s.class = true, -1 // one that fails does not go to the pool
	c.submit(s, true)
	s.class = class
	if c.Posted() > posted {
		return true
	}
	if c.queue.messages.Len() > 0 {
		c.queue.popMessage()
	}
	c.Awake()
	c.retry()
	return false
}

// Awake requests Writable at the next news of the device or of the peer.
func (c *Conn) Awake() {
	c.queue.refuse()
	c.creditWaitNeeded()
	c.l.Shares.again(c)
}

// creditWaitNeeded starts a wait for credits if there are none. Something is to be sent.
func (c *Conn) creditWaitNeeded() {
	if c.mode == ModeMessages && c.Session.Window() == 0 {
		c.traffic.creditWaitBegins(c.l.el)
	}
}

// creditWaitCheck ends the wait for credits if there are some, or if the connection is over.
func (c *Conn) creditWaitCheck() {
	if c.traffic.creditWaits() && (c.Session.Window() > 0 || c.Over()) {
		c.traffic.creditWaitEnds(c.l.el)
	}
}

// outlook collects the input of step.
func (c *Conn) outlook() outlook {
	o := outlook{depth: c.Flight.Depth, posted: c.Flight.Len(), silent: c.Flight.quiet, window: math.MaxUint32}
	if c.Sec.Owes() || c.out.seals() {
		o.posted = o.depth
	}
	if c.mode == ModeMessages {
		o.window = c.Session.Window()
	}
	if o.ops = c.queue.ops.Len() > 0; o.ops {
		o.opSeq, o.opCredit = c.queue.nextOp().seq, c.owesCredit()
	}
	if c.queue.messages.Len() > 0 {
		s := c.queue.nextMessage()
		o.sends, o.sendSeq, o.alone = true, s.seq, s.notify
		o.ready = o.room() && c.readyFor(s)
		o.inline = c.queue.inlineFollows(c.Device.attr.MaxInline)
	}
	return o
}

// ready reports whether a message that does not wait may be handed to the device now.
func (c *Conn) ready() bool {
	return c.Flight.hasRoom() && !c.Sec.Owes() && !c.out.seals() && (c.mode != ModeMessages || c.Session.Window() > 0)
}

// readyFor reports whether s may be handed to the device when messages may: a large one needs more.
func (c *Conn) readyFor(s *Outgoing) bool { return s.Len() <= c.sizes.direct || c.offerReady(s) }

// post hands a message to the device. Not ok: it has no room, and the message is back in the queue.
func (c *Conn) post(s *Outgoing, quiet bool) (ok bool) {
	b, n := s.buf[headerRoom:], s.Len()
	if c.mode == ModeMessages {
		b = s.buf
		c.Session.Header(wire.TypeData, 0).Put(b)
	}
	var err error
	typ := wire.TypeData
	if n <= c.sizes.direct {
		err = c.Device.post(c, s, b, quiet)
	} else {
		typ = wire.TypeOffer
		err = c.offerMessage(s)
	}
	switch {
	case err == nil && c.out.seals():
		c.traffic.messageSent(n, true)
	case err == nil:
		c.traffic.messageSent(n, typ == wire.TypeOffer)
		if c.mode == ModeMessages {
			c.Session.Sent(typ, 0)
			c.observe()
		}
	case errors.Is(err, errNoRoom), errors.Is(err, unix.ENOMEM) && c.Flight.Len() > 0:
		c.queue.returnMessage(s) // a completion makes room
		c.l.Shares.again(c)
		c.retry()
		return false
	case errors.Is(err, unix.ENOMEM) && c.terms.Stream: // a stream must not have a hole
		c.traffic.messageUnsent()
		c.up.SendFailed(s, fmt.Errorf("%w: %w", ErrFlushed, err))
		c.up.BreakOff(fmt.Errorf("a message of %d bytes could not be sent: %w", n, err))
	case errors.Is(err, unix.ENOMEM): // no completion will make room, but the connection lives on
		c.traffic.messageUnsent()
		c.up.SendFailed(s, err)
	default:
		c.failUnsent(s, err)
	}
	return true
}

// failUnsent answers a chain of messages that the device has refused, and does not take anymore.
func (c *Conn) failUnsent(first *Outgoing, err error) {
	for s := first; s != nil; s = s.next {
		c.traffic.messageUnsent()
	}
	c.failSends(first, fmt.Errorf("%w: %w", ErrFlushed, err))
	c.queuePairRefused(verbs.Send, err)
}

// failSends answers a chain of messages that were not sent.
func (c *Conn) failSends(first *Outgoing, err error) {
	for first != nil {
		s := first
		first, s.next = s.next, nil
		c.up.SendFailed(s, err)
	}
}

// Pump posts as much as the device and the credits have room for. A full send queue is refilled in
// parts, that is in runs.
func (c *Conn) Pump() {
	c.flush()
	if !c.Sec.pay() {
		return
	}
	if c.end.goodbye == goodbyeDue {
		c.goodbyeResume()
	}
	if !c.sends() {
		return
	}
	if !c.offerSealed() {
		c.update()
		return
	}
	if c.queue.ops.Len() > 0 {
		c.update() // what carries no count must not keep the peer waiting for it
	}
	room := c.Flight.Depth - c.Flight.Len()
	for room >= part(c.Flight.Depth) && !c.Over() && c.postNext() {
	}
	if c.queue.messages.Len() > 0 || c.owesCredit() {
		c.creditWaitNeeded()
	}
	if !c.Over() && c.queue.writable(c.l.limits.Queue) {
		c.up.Writable()
	}
	if c.Closing() && c.queue.empty() {
		c.Session.Finish() // behind the last that takes a credit
	}
	c.update()
	if c.out != nil {
		c.out.recycleSpent(&c.Flight)
	}
	c.checkDrained()
}

// postNext posts the next entry of the queue. False: nothing may go now.
func (c *Conn) postNext() bool {
	o := c.outlook()
	switch next := o.step(); next {
	case stepOp:
		return c.postOp(c.queue.popOp())
	case stepSend, stepQuiet:
		if b := c.bundleNext(&o); b.n > 0 {
			return c.mayPostBundle() && c.postBundle(b)
		}
		if !c.renew(c.queue.nextMessage()) {
			return false
		}
		return c.post(c.queue.popMessage(), next == stepQuiet)
	}
	return false
}

// renew updates a message that has waited. A renew that panics ends this connection, which would
// have a hole, and not the loop's present work, which may be another connection's.
func (c *Conn) renew(s *Outgoing) (ok bool) {
	if s.renew == nil {
		return true
	}
	defer func() {
		if value := recover(); value != nil {
			c.up.RenewFailed(value) // the end answers it and all other messages
		}
	}()
	s.buf = s.buf[:headerRoom+min(len(s.renew(s.Bytes())), s.Len())]
	return true
}

// Abandon answers the postings that the device did not flush with the queue pair. The memory stays
// the device's until it does.
func (c *Conn) Abandon() {
	c.failQueued() // if a Goexit has broken Stop off
	c.Sec.discard()
	for n := c.Flight.head; n != c.Flight.next(); n++ {
		p := c.Flight.at(n)
		if s := p.Send; s != nil {
			p.Send = nil
			for m := s; m != nil; m = m.next {
				m.class = -1 // not for another message: the device may be sending from it
			}
			c.failSends(s, Flushed())
		} else if p.op != nil {
			p.op.Owner.Abandoned(c, p.op)
		}
	}
}

// retry pumps c after RetryAfter, if no completion will do that earlier.
func (c *Conn) retry() {
	if !c.Flight.completes() {
		c.queue.retry(c.l.el, c.Pump)
	}
}
