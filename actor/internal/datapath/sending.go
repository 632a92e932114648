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
func (c *Conn) Submit(s *Outgoing) { c.Out.submitMessage(s, false) }

// submitMessage queues or posts a message. now: it may not wait for the end of the turn.
func (out *sending) submitMessage(s *Outgoing, now bool) {
	limit := out.c.l.limits.Queue
	bundled := !now && out.c.Session.Bundles() && s.canBundle()
	if !bundled || out.queue.messages.Len() >= limit {
		out.postGathered()
	}
	switch {
	case !out.c.maySubmit():
		err := out.c.NotSending()
		out.c.traffic.messageUnsent()
		out.c.identifier.SendRefused(s, err, err)
		s.Recycle()
	case s.Len() > out.sizes.largest:
		out.c.identifier.SendFailed(s, out.sizes.tooLarge(s.Len()))
		out.c.traffic.messageUnsent()
	case bundled && out.mustGather():
		out.queue.pushMessage(s)
		out.queue.gathers = true
		out.c.l.gathering.addConn(out)
	case !out.queue.isEmpty() || !out.canPostNow() || !out.readyFor(s):
		if out.queue.messages.Len() >= limit {
			out.queue.noteRefused()
			out.c.traffic.messageUnsent()
			err := fmt.Errorf("%d messages wait for the peer: %w (%w)", limit, ErrQueueFull, unix.ENOBUFS)
			out.c.identifier.SendRefused(s, ErrQueueFull, err)
			s.Recycle()
			return
		}
		out.queue.pushMessage(s)
		out.creditWaitNeeded()
		out.c.l.Shares.resumeOrWait(out.c)
		out.c.reportCounts()
	default:
		s.seq = out.queue.seq // without room it goes back, before what is queued later
		out.postMessage(s, false)
	}
}

// TryPost is Submit, but leaves s with the caller if device or peer have no room for it now.
func (c *Conn) TryPost(s *Outgoing) (ok bool) {
	c.Out.postGathered()
	switch {
	case s.buf == nil || !c.maySubmit():
		return false
	case c.Out.queue.messages.Len() > 0 || !c.Out.canPostNow():
		c.Awake()
		return false
	}
	posted, class := c.Posted(), s.class
	s.taken, s.class = true, -1 // one that fails does not go to the pool
	c.Out.submitMessage(s, true)
	s.class = class
	if c.Posted() > posted {
		return true
	}
	if c.Out.queue.messages.Len() > 0 {
		c.Out.queue.popMessage()
	}
	c.Awake()
	c.Out.pumpLater()
	return false
}

// Awake requests Writable at the next news of the device or of the peer.
func (c *Conn) Awake() {
	c.Out.queue.noteRefused()
	c.Out.creditWaitNeeded()
	c.l.Shares.resumeOrWait(c)
}

// creditWaitNeeded starts a wait for credits if there are none. Something is to be sent.
func (out *sending) creditWaitNeeded() {
	if out.c.terms.Mode == ModeMessages && out.c.Session.Window() == 0 {
		out.c.traffic.creditWaitBegins(out.c.l.el)
	}
}

// creditWaitCheck ends the wait for credits if there are some, or if the connection is over.
func (out *sending) creditWaitCheck() {
	if out.c.traffic.creditWaits() && (out.c.Session.Window() > 0 || out.c.Over()) {
		out.c.traffic.creditWaitEnds(out.c.l.el)
	}
}

// newOutlook collects the input of nextStep.
func (out *sending) newOutlook() outlook {
	o := outlook{depth: out.Flight.Depth, posted: out.Flight.Len(), silent: out.Flight.quiet, window: math.MaxUint32}
	if out.c.Sec.Owes() || out.offers.isSealing() {
		o.posted = o.depth
	}
	if out.c.terms.Mode == ModeMessages {
		o.window = out.c.Session.Window()
	}
	if o.ops = out.queue.ops.Len() > 0; o.ops {
		o.opSeq, o.opCredit = out.queue.nextOp().seq, out.owesCredit()
	}
	if out.queue.messages.Len() > 0 {
		s := out.queue.nextMessage()
		o.sends, o.sendSeq, o.alone = true, s.seq, s.notify
		o.ready = o.hasRoom() && out.readyFor(s)
		o.inline = out.queue.inlineFollows(out.c.Device.attr.MaxInline)
	}
	return o
}

// canPostNow reports whether a message that does not wait may be handed to the device now.
func (out *sending) canPostNow() bool {
	return out.Flight.hasRoom() && !out.c.Sec.Owes() && !out.offers.isSealing() && (out.c.terms.Mode != ModeMessages || out.c.Session.Window() > 0)
}

// readyFor reports whether s may be handed to the device when messages may: a large one needs more.
func (out *sending) readyFor(s *Outgoing) bool {
	if s.Len() <= out.sizes.direct {
		return true
	}
	if out.offers == nil {
		out.offers = newOffers(out.c)
	}
	return out.offers.canOffer(s)
}

// postMessage hands a message to the device. Not ok: it has no room, and the message is back in the
// queue.
func (out *sending) postMessage(s *Outgoing, quiet bool) (ok bool) {
	b, n := s.buf[headerRoom:], s.Len()
	if out.c.terms.Mode == ModeMessages {
		b = s.buf
		out.c.Session.Header(wire.TypeData, 0).Put(b)
	}
	var err error
	typ := wire.TypeData
	if n <= out.sizes.direct {
		err = out.c.Device.postMessage(out.c, s, b, quiet)
	} else {
		typ = wire.TypeOffer
		err = out.offerMessage(s)
	}
	switch {
	case err == nil && out.offers.isSealing():
		out.c.traffic.messageSent(n, true)
	case err == nil:
		out.c.traffic.messageSent(n, typ == wire.TypeOffer)
		if out.c.terms.Mode == ModeMessages {
			out.c.Session.Sent(typ, 0)
			out.c.reportCounts()
		}
	case errors.Is(err, errNoRoom), errors.Is(err, unix.ENOMEM) && out.Flight.Len() > 0:
		out.queue.returnMessage(s) // a completion makes room
		out.c.l.Shares.resumeOrWait(out.c)
		out.pumpLater()
		return false
	case errors.Is(err, unix.ENOMEM) && out.c.terms.Stream: // a stream must not have a hole
		out.c.traffic.messageUnsent()
		out.c.identifier.SendFailed(s, fmt.Errorf("%w: %w", ErrFlushed, err))
		out.c.identifier.BreakOff(fmt.Errorf("a message of %d bytes could not be sent: %w", n, err))
	case errors.Is(err, unix.ENOMEM): // no completion will make room, but the connection lives on
		out.c.traffic.messageUnsent()
		out.c.identifier.SendFailed(s, err)
	default:
		out.failUnsent(s, err)
	}
	return true
}

// failUnsent answers a chain of messages that the device has refused, and does not take anymore.
func (out *sending) failUnsent(first *Outgoing, err error) {
	for s := first; s != nil; s = s.next {
		out.c.traffic.messageUnsent()
	}
	out.failSends(first, fmt.Errorf("%w: %w", ErrFlushed, err))
	out.c.queuePairRefused(verbs.Send, err)
}

// failSends answers a chain of messages that were not sent.
func (out *sending) failSends(first *Outgoing, err error) {
	for first != nil {
		s := first
		first, s.next = s.next, nil
		out.c.identifier.SendFailed(s, err)
	}
}

// Pump posts as much as the device and the credits have room for. A full send queue is refilled in
// parts, that is in runs.
func (c *Conn) Pump() {
	c.Out.postGathered()
	if !c.Sec.payOwed() {
		return
	}
	if c.end.goodbye == goodbyeDue {
		c.goodbyeResume()
	}
	if !c.mayPost() {
		return
	}
	if !c.Out.offerSealed() {
		c.Out.sendUpdates()
		return
	}
	if c.Out.queue.ops.Len() > 0 {
		c.Out.sendUpdates() // what carries no count must not keep the peer waiting for it
	}
	room := c.Out.Flight.Depth - c.Out.Flight.Len()
	for room >= completionBatch(c.Out.Flight.Depth) && !c.Over() && c.Out.postNext() {
	}
	if c.Out.queue.messages.Len() > 0 || c.Out.owesCredit() {
		c.Out.creditWaitNeeded()
	}
	if !c.Over() && c.Out.queue.takeWritable(c.l.limits.Queue) {
		c.identifier.Writable()
	}
	if c.Closing() && c.Out.queue.isEmpty() {
		c.Session.Finish() // behind the last that takes a credit
	}
	c.Out.sendUpdates()
	if c.Out.offers != nil {
		c.Out.offers.recycleSpent()
	}
	c.checkDrained()
}

// postNext posts the next entry of the queue. False: nothing may go now.
func (out *sending) postNext() bool {
	o := out.newOutlook()
	switch next := o.nextStep(); next {
	case stepOp:
		return out.postOp(out.queue.popOp())
	case stepSend, stepQuiet:
		if b := out.bundleNext(&o); b.n > 0 {
			return out.mayPostBundle() && out.postBundle(b)
		}
		if !out.renewMessage(out.queue.nextMessage()) {
			return false
		}
		return out.postMessage(out.queue.popMessage(), next == stepQuiet)
	}
	return false
}

// renewMessage updates a message that has waited. A renew that panics ends this connection, which
// would have a hole, and not the loop's present work, which may be another connection's.
func (out *sending) renewMessage(s *Outgoing) (ok bool) {
	if s.renew == nil {
		return true
	}
	defer func() {
		if value := recover(); value != nil {
			out.c.identifier.RenewFailed(value) // the end answers it and all other messages
		}
	}()
	s.buf = s.buf[:headerRoom+min(len(s.renew(s.Bytes())), s.Len())]
	return true
}

// Abandon answers the postings that the device did not flush with the queue pair. The memory stays
// the device's until it does.
func (c *Conn) Abandon() {
	c.Out.failQueued() // if a Goexit has broken Stop off
	c.Sec.failOwed()
	for n := c.Out.Flight.head; n != c.Out.Flight.nextNumber(); n++ {
		p := c.Out.Flight.postingAt(n)
		if s := p.Send; s != nil {
			p.Send = nil
			for m := s; m != nil; m = m.next {
				m.class = -1 // not for another message: the device may be sending from it
			}
			c.Out.failSends(s, Flushed())
		} else if p.op != nil {
			p.op.Issuer.Abandoned(c, p.op)
		}
	}
}

// pumpLater pumps c after RetryAfter, if no completion will do that earlier.
func (out *sending) pumpLater() {
	if !out.Flight.willComplete() {
		out.queue.pumpLater(out.c.l.el, out.c.Pump)
	}
}
