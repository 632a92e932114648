package datapath

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// Traffic counts the messages and operations of a connection. Bytes are the user's, without
// headers.
type Traffic struct {
	Sent          uint64 // messages and Writes with an immediate that the device took
	SentBytes     uint64
	Received      uint64 // messages that were delivered
	ReceivedBytes uint64
	LargeSent     uint64 // of Sent, those that the peer reads
	LargeReceived uint64 // of Received, those that this side read
	Reads         uint64 // one-sided operations of this side that succeeded
	ReadBytes     uint64
	Writes        uint64
	WriteBytes    uint64
	Atomics       uint64
	// CreditWaits counts how often sending had to wait because the peer had no room for a message.
	// CreditWait is the total time of these waits, including the present one.
	CreditWaits uint64
	CreditWait  time.Duration
	// WaitsFor is the duration of the present wait for credits; 0: none.
	WaitsFor time.Duration
}

// traffic keeps a connection's counters. Other code only reads its fields. Times are those of the
// loop's turns.
type traffic struct {
	counts  Traffic
	unsent  uint64    // messages that failed before the device took them
	waiting time.Time // start of the present wait for credits; zero: none
}

// messageSent counts a message of n bytes that the device took, or that is being sealed for an
// offer.
func (t *traffic) messageSent(n int, large bool) {
	t.counts.Sent++
	t.counts.SentBytes += uint64(n)
	if large {
		t.counts.LargeSent++
	}
}

// bundleSent counts the messages of a bundle that the device took.
func (t *traffic) bundleSent(messages, bytes int) {
	t.counts.Sent += uint64(messages)
	t.counts.SentBytes += uint64(bytes)
}

// immediateSent counts a Write with an immediate that the device took. Its bytes count as an
// operation's.
func (t *traffic) immediateSent() { t.counts.Sent++ }

// messageUnsent counts a message that failed before the device took it.
func (t *traffic) messageUnsent() { t.unsent++ }

// messageReceived counts a message of n bytes that is delivered.
func (t *traffic) messageReceived(n int) {
	t.counts.Received++
	t.counts.ReceivedBytes += uint64(n)
}

// largeReceived counts a delivered message that this side read.
func (t *traffic) largeReceived() { t.counts.LargeReceived++ }

// operationSucceeded counts a one-sided operation of the owner.
func (t *traffic) operationSucceeded(o *OneSided) {
	if _, large := o.Issuer.(*arrivals); large {
		return // a part of a large message
	}
	switch n := uint64(o.Near.Length); {
	case o.Op == verbs.Read:
		t.counts.Reads++
		t.counts.ReadBytes += n
	case o.Op.Writes():
		t.counts.Writes++
		t.counts.WriteBytes += n
	case o.Op.Atomic():
		t.counts.Atomics++
	}
}

// creditWaitBegins starts a wait for credits, unless there is one.
func (t *traffic) creditWaitBegins(el *eventloop.Loop) {
	if t.waiting.IsZero() {
		t.waiting = el.Now()
		t.counts.CreditWaits++
	}
}

// creditWaits reports whether there is a wait for credits.
func (t *traffic) creditWaits() bool { return !t.waiting.IsZero() }

// creditWaitEnds ends the wait for credits.
func (t *traffic) creditWaitEnds(el *eventloop.Loop) {
	t.counts.CreditWait += el.Now().Sub(t.waiting)
	t.waiting = time.Time{}
}

// snapshot returns the counters, with the present wait.
func (t *traffic) snapshot(el *eventloop.Loop) Traffic {
	n := t.counts
	if t.creditWaits() {
		n.WaitsFor = max(el.Now().Sub(t.waiting), 0)
		n.CreditWait += n.WaitsFor
	}
	return n
}

// countFates counts the sends by outcome, when the peer is known to have consumed delivered
// messages.
func (t *traffic) countFates(e *cmid.Closed, delivered uint64) {
	e.Delivered = delivered
	e.Unsent += t.unsent
	e.Unknown = t.counts.Sent - delivered
}

// Traffic returns the counters of the messages and operations until now.
func (c *Conn) Traffic() Traffic { return c.traffic.snapshot(c.l.el) }

// Fates counts the sends by outcome.
func (c *Conn) Fates(e *cmid.Closed) { c.traffic.countFates(e, c.Session.Delivered()) }

// Posted returns the number of messages that the device took.
func (c *Conn) Posted() uint64 { return c.traffic.counts.Sent }
