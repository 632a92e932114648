package datapath

import (
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// Traffic is what a connection has moved. Bytes are the users', without headers.
type Traffic struct {
	Sent          uint64 // messages that the device was handed
	SentBytes     uint64
	Received      uint64 // messages that were delivered
	ReceivedBytes uint64
	LargeSent     uint64 // of Sent, those that the peer reads
	LargeReceived uint64 // of Received, those that were read
	Reads         uint64 // one-sided operations of this side that have succeeded
	ReadBytes     uint64
	Writes        uint64
	WriteBytes    uint64
	Atomics       uint64
	// CreditWaits is how often something has had to wait because the peer had no room for a
	// message, and CreditWait how long in all, with the present wait.
	CreditWaits uint64
	CreditWait  time.Duration
	// WaitsFor is how long the present wait for credits has lasted; 0: nothing waits for any.
	WaitsFor time.Duration
}

// traffic is a connection's account of it. Times are those of the loop's turns.
type traffic struct {
	Traffic
	waits bool // for credits ...
	since time.Time
}

// Traffic is what has been moved until now.
func (c *Conn) Traffic() Traffic {
	t := c.traffic.Traffic
	t.Sent = c.left
	if c.traffic.waits {
		t.WaitsFor = max(c.l.el.Now().Sub(c.traffic.since), 0)
		t.CreditWait += t.WaitsFor
	}
	return t
}

// deliver gives the owner a message.
func (c *Conn) deliver(m *Inbound) {
	c.traffic.Received++
	c.traffic.ReceivedBytes += uint64(len(m.Data))
	c.up.Deliver(m)
}

// wanting begins a wait for credits, if there are none. Something is there to be sent.
func (c *Conn) wanting() {
	if !c.traffic.waits && c.mode == ModeMessages && c.Session.Window() == 0 {
		c.traffic.waits, c.traffic.since = true, c.l.el.Now()
		c.traffic.CreditWaits++
	}
}

// credited ends the wait, if there are credits, or nobody needs them any more.
func (c *Conn) credited() {
	if c.traffic.waits && (c.Session.Window() > 0 || c.Over()) {
		c.traffic.waits = false
		c.traffic.CreditWait += c.l.el.Now().Sub(c.traffic.since)
	}
}

// accomplished counts a one-sided operation of the owner's that has succeeded.
func (c *Conn) accomplished(o *OneSided) {
	if _, ours := o.Owner.(*arrivals); ours {
		return // a part of a large message
	}
	switch t, n := &c.traffic, uint64(o.Near.Length); {
	case o.Op == verbs.Read:
		t.Reads++
		t.ReadBytes += n
	case o.Op.Writes():
		t.Writes++
		t.WriteBytes += n
	case o.Op.Atomic():
		t.Atomics++
	}
}
