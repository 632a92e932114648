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
func (c *Conn) Submit(s *Outgoing) { c.Out.submit(s, false) }

// submit is Submit. now: it may not wait for the end of the turn.
func (out *sending) submit(s *Outgoing, now bool) {
	limit := out.c.l.limits.Queue
	bundled := !now && out.c.Session.Bundles() && s.bundled()
	if !bundled || out.queue.messages.Len() >= limit {
		out.flush()
	}
	switch {
	case !out.c.taking():
		err := out.c.NotSending()
		out.c.traffic.messageUnsent()
		out.c.up.SendRefused(s, err, err)
		s.Recycle()
	case s.Len() > out.sizes.largest:
		out.c.up.SendFailed(s, out.sizes.tooLarge(s.Len()))
		out.c.traffic.messageUnsent()
	case bundled && out.gathers():
		out.queue.pushMessage(s)
		out.queue.gathers = true
		out.c.l.gathering.add(out)
	case !out.queue.empty() || !out.ready() || !out.readyFor(s):
		if out.queue.messages.Len() >= limit {
			out.queue.refuse()
			out.c.traffic.messageUnsent()
			err := fmt.Errorf("%d messages wait for the peer: %w (%w)", limit, ErrQueueFull, unix.ENOBUFS)
			out.c.up.SendRefused(s, ErrQueueFull, err)
			s.Recycle()
			return
		}
		out.queue.pushMessage(s)
		out.creditWaitNeeded()
		out.c.l.Shares.again(out.c)
		out.c.observe()
	default:
		out.post(s, false)
	}
}

// TryPost is Submit, but leaves s with the caller if device or peer have no room for it now.
func (c *Conn) TryPost(s *Outgoing) (ok bool) {
	c.Out.flush()
	switch {
	case s.buf == nil || !c.taking():
		return false
	case c.Out.queue.messages.Len() > 0 || !c.Out.ready():
		c.Awake()
		return false
	}
	posted, class := c.Posted(), s.class
	s.taken, s.class = true, -1 // one that fails does not go to the pool
	c.Out.submit(s, true)
	s.class = class
	if c.Posted() > posted {
		return true
	}
	if c.Out.queue.messages.Len() > 0 {
		c.Out.queue.popMessage()
	}
	c.Awake()
	c.Out.retry()
	return false
}

// Awake requests Writable at the next news of the device or of the peer.
func (c *Conn) Awake() {
	c.Out.queue.refuse()
	c.Out.creditWaitNeeded()
	c.l.Shares.again(c)
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

// outlook collects the input of step.
func (out *sending) outlook() outlook {
	o := outlook{depth: out.Flight.Depth, posted: out.Flight.Len(), silent: out.Flight.quiet, window: math.MaxUint32}
	if out.c.Sec.Owes() || out.offers.seals() {
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
		o.ready = o.room() && out.readyFor(s)
		o.inline = out.queue.inlineFollows(out.c.Device.attr.MaxInline)
	}
	return o
}

// ready reports whether a message that does not wait may be handed to the device now.
func (out *sending) ready() bool {
	return out.Flight.hasRoom() && !out.c.Sec.Owes() && !out.offers.seals() && (out.c.terms.Mode != ModeMessages || out.c.Session.Window() > 0)
}

// readyFor reports whether s may be handed to the device when messages may: a large one needs more.
func (out *sending) readyFor(s *Outgoing) bool {
	if s.Len() <= out.sizes.direct {
		return true
	}
	if out.offers == nil {
		out.offers = newOffers(out.c)
	}
	return out.offers.ready(s)
}

// post hands a message to the device. Not ok: it has no room, and the message is back in the queue.
func (out *sending) post(s *Outgoing, quiet bool) (ok bool) {
	b, n := s.buf[headerRoom:], s.Len()
	if out.c.terms.Mode == ModeMessages {
		b = s.buf
		out.c.Session.Header(wire.TypeData, 0).Put(b)
	}
	var err error
	typ := wire.TypeData
	if n <= out.sizes.direct {
		err = out.c.Device.post(out.c, s, b, quiet)
	} else {
		typ = wire.TypeOffer
		err = out.offerMessage(s)
	}
	switch {
	case err == nil && out.offers.seals():
		out.c.traffic.messageSent(n, true)
	case err == nil:
		out.c.traffic.messageSent(n, typ == wire.TypeOffer)
		if out.c.terms.Mode == ModeMessages {
			out.c.Session.Sent(typ, 0)
			out.c.observe()
		}
	case errors.Is(err, errNoRoom), errors.Is(err, unix.ENOMEM) && out.Flight.Len() > 0:
		out.queue.returnMessage(s) // a completion makes room
		out.c.l.Shares.again(out.c)
		out.retry()
		return false
	case errors.Is(err, unix.ENOMEM) && out.c.terms.Stream: // a stream must not have a hole
		out.c.traffic.messageUnsent()
		out.c.up.SendFailed(s, fmt.Errorf("%w: %w", ErrFlushed, err))
		out.c.up.BreakOff(fmt.Errorf("a message of %d bytes could not be sent: %w", n, err))
	case errors.Is(err, unix.ENOMEM): // no completion will make room, but the connection lives on
		out.c.traffic.messageUnsent()
		out.c.up.SendFailed(s, err)
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
		out.c.up.SendFailed(s, err)
	}
}

// Pump posts as much as the device and the credits have room for. A full send queue is refilled in
// parts, that is in runs.
func (c *Conn) Pump() {
	c.Out.flush()
	if !c.Sec.pay() {
		return
	}
	if c.end.goodbye == goodbyeDue {
		c.goodbyeResume()
	}
	if !c.sends() {
		return
	}
	if !c.Out.offerSealed() {
		c.Out.update()
		return
	}
	if c.Out.queue.ops.Len() > 0 {
		c.Out.update() // what carries no count must not keep the peer waiting for it
	}
	room := c.Out.Flight.Depth - c.Out.Flight.Len()
	for room >= part(c.Out.Flight.Depth) && !c.Over() && c.Out.postNext() {
	}
	if c.Out.queue.messages.Len() > 0 || c.Out.owesCredit() {
		c.Out.creditWaitNeeded()
	}
	if !c.Over() && c.Out.queue.writable(c.l.limits.Queue) {
		c.up.Writable()
	}
	if c.Closing() && c.Out.queue.empty() {
		c.Session.Finish() // behind the last that takes a credit
	}
	c.Out.update()
	if c.Out.offers != nil {
		c.Out.offers.recycleSpent()
	}
	c.checkDrained()
}

// postNext posts the next entry of the queue. False: nothing may go now.
func (out *sending) postNext() bool {
	o := out.outlook()
	switch next := o.step(); next {
	case stepOp:
		return out.postOp(out.queue.popOp())
	case stepSend, stepQuiet:
		if b := out.bundleNext(&o); b.n > 0 {
			return out.mayPostBundle() && out.postBundle(b)
		}
		if !out.renew(out.queue.nextMessage()) {
			return false
		}
		return out.post(out.queue.popMessage(), next == stepQuiet)
	}
	return false
}

// renew updates a message that has waited. A renew that panics ends this connection, which would
// have a hole, and not the loop's present work, which may be another connection's.
func (out *sending) renew(s *Outgoing) (ok bool) {
	if s.renew == nil {
		return true
	}
	defer func() {
		if value := recover(); value != nil {
			out.c.up.RenewFailed(value) // the end answers it and all other messages
		}
	}()
	s.buf = s.buf[:headerRoom+min(len(s.renew(s.Bytes())), s.Len())]
	return true
}

// Abandon answers the postings that the device did not flush with the queue pair. The memory stays
// the device's until it does.
func (c *Conn) Abandon() {
	c.Out.failQueued() // if a Goexit has broken Stop off
	c.Sec.discard()
	for n := c.Out.Flight.head; n != c.Out.Flight.next(); n++ {
		p := c.Out.Flight.at(n)
		if s := p.Send; s != nil {
			p.Send = nil
			for m := s; m != nil; m = m.next {
				m.class = -1 // not for another message: the device may be sending from it
			}
			c.Out.failSends(s, Flushed())
		} else if p.op != nil {
			p.op.Owner.Abandoned(c, p.op)
		}
	}
}

// retry pumps c after RetryAfter, if no completion will do that earlier.
func (out *sending) retry() {
	if !out.Flight.completes() {
		out.queue.retry(out.c.l.el, out.c.Pump)
	}
}
