package datapath

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// New makes the queue pair of id and its receives. id must have a device: it is a request, or its
// route was resolved. a is the Area of the owner's one-sided operations; nil: there are none. h
// makes it a secured connection; nil: it is not to be.
func New(l *Loop, id *cmid.ID, identifier Identifier, t Terms, a *Area, h Handshake) (*Conn, error) {
	dev := id.Device()
	if dev == nil {
		return nil, fmt.Errorf("the identifier has no device: %w", unix.ENODEV)
	}
	d := l.deviceOf(dev)
	c := &Conn{ID: id, identifier: identifier, l: l, terms: t, Device: d}
	c.Out.c, c.In.c = c, c
	size := min(t.Messages, maxRawMessage)
	c.Out.sizes.initLargest(t.bareLimit(size))
	if c.Out.Flight.Depth = t.SendsUnderWay(d.attr.AsksForReceives); t.Sends > 0 && !d.attr.AsksForReceives {
		c.Out.Flight.Depth = min(t.Sends, SendDepth)
	}
	if limit := d.attr.MaxQPWR; limit > 0 {
		c.Out.Flight.Depth = min(c.Out.Flight.Depth, limit)
	}
	c.Session = wire.NewSession(t.Credits)
	if t.Mode == ModeMessages {
		hello := l.Hello(&t, d.attr)
		size = hello.Eager + t.perMessage()
		c.terms.Promised = hello.Eager
		c.Out.sizes.setGranted(hello)
		if t.Features != 0 {
			c.Sec = &security{c: c, handshake: h, tls: secure.Features(t.Features)&secure.FeatureTLS != 0, inline: make([]byte, 0, d.attr.MaxInline)}
		}
	}
	if err := c.res.claimDomain(d, a, c.mayUseOffers()); err != nil {
		return nil, err
	}
	var err error
	if c.In.pool, err = c.res.dom.recvPool(size); err != nil {
		c.releaseMemory()
		return nil, err
	}
	receives := t.receiveCount()
	if limit := d.attr.MaxQPWR; c.In.pool.srq == nil && limit > 0 && receives > limit {
		c.releaseMemory()
		return nil, &ResourceError{Device: dev.Name(), What: "receives", Need: receives, Limit: limit}
	}
	if err = c.res.claimCompletions(c.Out.Flight.Depth + receives); err != nil {
		c.releaseMemory()
		return nil, err
	}
	c.In.initResizing(receives)
	d.Conns++
	attr := verbs.QPInitAttr{
		PD: c.res.pd, SendCQ: c.res.cq.cq, RecvCQ: c.res.cq.cq, SRQ: c.In.pool.srq, MaxSendWR: c.Out.Flight.Depth, MaxSGE: 1, Context: c,
	}
	if c.In.pool.srq == nil {
		attr.MaxRecvWR = receives
	}
	if c.QP, err = id.CreateQP(attr); err != nil {
		c.Release()
		return nil, err
	}
	c.l.Shares.countConn(c)
	if err = c.Sec.shutOut(); err == nil && c.In.pool.srq == nil {
		err = c.In.postReceives(receives)
	}
	if err != nil {
		c.Stop()
		err = errors.Join(err, c.QP.Destroy())
		c.Release()
		return nil, err
	}
	return c, nil
}

// Release frees the connection's resources of its device, after the device has released the queue
// pair.
func (c *Conn) Release() {
	c.Device.Drain()
	if c.state == connReleased {
		return
	}
	c.Stop()
	c.setState(connReleased)
	c.In.person.endPromise(c.l, c.In.bytes)
	c.l.Shares.uncountConn(c)
	c.res.cq.Room += c.res.entries
	c.Sec.failOwed()
	if c.Out.offers != nil {
		c.Out.offers.releaseRest()
	}
	c.releaseMemory()
	c.Device.Conns--
	c.Device.closeUnused()
}

// releaseMemory returns the memory and the protection domain, after the queue pair is gone.
func (c *Conn) releaseMemory() {
	if c.In.pool != nil {
		c.In.leavePools()
	}
	c.res.releaseDomain()
}

// Scoped reports whether c's protection domain is not the loop's shared one.
func (c *Conn) Scoped() bool { return c.res.hasOwnDomain() }

// Establish starts the flow of messages, after the owner was notified of Established.
func (c *Conn) Establish() {
	if c.Over() { // broken off since then
		return
	}
	c.setState(connOpen)
	c.Beat.startLooks(c)
	c.Beat.watchFirst(c)
	c.Out.sendUpdates()
	c.l.Shares.resumeOrWait(c)
	if c.In.Arrivals != nil {
		c.In.Arrivals.deliverReady()
		c.In.Arrivals.readOffers(false)
	}
}

// sendUpdates answers the peer's probe, and sends a credit update if one is due. If none is, the
// peer may still need one.
func (out *sending) sendUpdates() {
	if out.c.terms.Mode != ModeMessages || !out.c.mayPost() {
		return
	}
	if out.c.Sec != nil && !out.c.Sec.updateKey() {
		return
	}
	for out.Flight.hasRoom() {
		typ, flags, ok := out.c.Session.Next()
		if !ok {
			out.c.In.reliefCheck()
			return
		}
		if !out.sendControl(typ, flags) {
			return
		}
	}
}

// sendControl sends a message that is only a header. Not ok: there was no room, and sendUpdates
// tries again, or the device refused it.
func (out *sending) sendControl(typ wire.Type, flags uint8) (ok bool) {
	switch err := out.postControl(typ, flags); {
	case err == nil:
		return true
	case errors.Is(err, unix.ENOMEM):
		out.pumpLater()
	default:
		out.c.queuePairRefused(verbs.Send, err)
	}
	return false
}

// Drain prepares for Close: it calls the identifier when all messages have been consumed, or in raw
// mode completed.
func (c *Conn) Drain() {
	c.setState(connDraining)
	c.l.Shares.resumeOrWait(c)
	c.Pump()
}

func (c *Conn) checkDrained() {
	if c.state != connDraining || !c.Out.queue.isEmpty() {
		return
	}
	if c.Out.Flight.Len() > 0 || c.Sec.Owes() || c.Out.offers.isSealing() || c.terms.Mode == ModeMessages && !c.Session.Settled() {
		return
	}
	c.setState(connDrained)
	c.identifier.Drained()
}

// Stop ends the data path. Waiting messages are reported as failed. The device flushes its postings
// when the queue pair is destroyed.
func (c *Conn) Stop() {
	switch {
	case c.Over():
		return
	case c.state == connConnecting:
		c.setState(connAborted)
	default:
		c.setState(connOver)
	}
	c.Out.creditWaitCheck()
	c.end.stopTimer()
	c.Beat.stopLooks()
	c.In.resize.returnAside()
	c.l.Shares.uncountConn(c)
	c.Out.failQueued()
	if c.In.Arrivals != nil {
		c.In.Arrivals.stopReading()
	}
	if c.Out.offers != nil {
		c.Out.offers.failUnread()
	}
}

// failQueued reports the messages and operations that wait as failed.
func (out *sending) failQueued() {
	for out.queue.messages.Len() > 0 {
		out.c.traffic.messageUnsent()
		out.c.identifier.SendFailed(out.queue.popMessage(), Flushed())
	}
	for out.queue.ops.Len() > 0 {
		o := out.queue.popOp()
		o.Issuer.Ended(out.c, o, Flushed())
	}
}

// Delivered returns the number of posted messages that the peer is known to have consumed.
func (c *Conn) Delivered() uint64 { return c.Session.Delivered() }

// Acknowledged reports whether the peer acknowledges the messages that it has consumed.
func (c *Conn) Acknowledged() bool { return c.terms.Mode == ModeMessages }

// Kind returns the mode of the messages.
func (c *Conn) Kind() Mode { return c.terms.Mode }

// MaxMessage returns the size of the largest message, in bytes, that the peer takes.
func (c *Conn) MaxMessage() int { return c.Out.sizes.largest }

// Attr returns the attributes of the device.
func (c *Conn) Attr() *verbs.DeviceAttr { return &c.Device.attr }

// WaitingOps returns the number of one-sided operations that wait for room in the send queue.
func (c *Conn) WaitingOps() int { return c.Out.queue.ops.Len() }

// CatchUp handles the completions that the device has.
func (c *Conn) CatchUp() { c.Device.Drain() }

func (c *Conn) reportCounts() {
	if c.l.Observed {
		c.identifier.Counted()
	}
}

// Counts are a connection's counts of messages. Without a hello only the last two are kept.
type Counts struct {
	Send     int // sendable before the peer has to consume some
	Unacked  int // sent, not known to be consumed
	Receive  int // receivable before the owner has to consume some
	Unfreed  int // received, not consumed by the owner yet
	Queued   int // waiting for credits or for the device
	InFlight int // the device's: posted, not completed
}

func (c *Conn) Counts() Counts {
	n := Counts{Queued: c.Out.queue.messages.Len(), InFlight: c.Out.Flight.Len()}
	if c.terms.Mode == ModeMessages {
		s := &c.Session
		n.Send, n.Unacked, n.Unfreed = int(s.Window()), s.Unacked(), s.Unfreed()
		n.Receive = s.Granted() - n.Unfreed
	}
	return n
}

func (c *Conn) NotSending() error {
	switch {
	case c.Closing() || c.end.hasGoodbye():
		return errClosing
	case c.Over():
		return Flushed()
	}
	return ErrNotConnected
}
