package datapath

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// Conn is an identifier's data path: its queue pair, its credits, what waits to be sent. Loop goroutine.
type Conn struct {
	ID     *cmid.ID
	Up     upper
	l      *Loop
	terms  Terms
	Device *Device
	pd     verbs.PD // the queue pair's
	dom    *domain  // of what it receives into and sends from
	QP     verbs.QP
	pool   *recvPool
	recv   intake
	cq     *completions
	mode   Mode
	state  connState
	broken error // why this side has broken it off; nil: it has not

	suspect  *QueuePairError  // what speaks for a queue pair that is dead; nil: nothing
	patience *eventloop.Timer // until it is broken off because of that

	parting parting // our own
	Beat    heartbeat
	waved   uint32 // its number in flight

	regions []*verbs.MR // in pd, of one-sided operations

	queue    sendQueue
	Arrivals *arrivals // nil: no message has had to wait
	out      *offers   // nil: no large message was sent
	Ops      opQueue
	seq      uint32 // of what was queued last, of both

	MaxSend  int    // bytes the peer takes
	eager    int    // bytes that are sent at once; what is larger is offered
	takes    int    // bytes that the peer may offer
	reads    uint32 // that may be under way
	Depth    int    // of the send queue
	claim    int    // of completions
	Flight   flight
	Session  wire.Session // of messages; of other modes what WithMessages grants
	full     bool         // ErrQueueFull was told: Writable is due
	due      bool         // in the device's list of what to pump
	retrying bool         // pump will be called

	unsent uint64
	left   uint64 // handed to the device
}

// Mode is how messages travel.
type Mode uint8

const (
	ModeMessages Mode = iota // hello, headers, credits
	ModeRaw                  // because the owner wants it
	ModeForeign              // because the peer has no hello
)

func (m Mode) String() string {
	switch m {
	case ModeRaw:
		return "raw"
	case ModeForeign:
		return "raw (foreign peer)"
	}
	return "messages"
}

// New makes the queue pair of id, which needs a device (after ResolveRoute, or on a request), and what it receives into.
func New(l *Loop, id *cmid.ID, up upper, t Terms) (*Conn, error) {
	dev := id.Device()
	if dev == nil {
		return nil, fmt.Errorf("the identifier has no device: %w", unix.ENODEV)
	}
	d := l.deviceOf(dev)
	c := &Conn{ID: id, Up: up, l: l, terms: t, Device: d, mode: t.Mode}
	size := min(t.Messages, maxRawMessage)
	c.MaxSend, c.eager = size, size
	c.Depth = t.SendsUnderWay(d.attr.AsksForReceives)
	if limit := d.attr.MaxQPWR; limit > 0 {
		c.Depth = min(c.Depth, limit)
	}
	c.Session = wire.NewSession(t.Credits)
	if t.Mode == ModeMessages {
		h := l.Hello(&t, d.attr)
		size = h.Eager + wire.HeaderLen
		c.takes, c.reads, c.eager = h.MaxMessage, ReadsMax, h.Eager
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	var err error
	if c.pool, err = c.dom.recvPool(size); err != nil {
		c.leave()
		return nil, err
	}
	receives := t.receives()
	if limit := d.attr.MaxQPWR; c.pool.srq == nil && limit > 0 && receives > limit {
		c.leave()
		return nil, &ResourceError{Device: dev.Name(), What: "receives", Need: receives, Limit: limit}
	}
	if c.cq, err = d.completions(c.Depth + receives); err != nil {
		c.leave()
		return nil, err
	}
	c.claim = c.Depth + receives
	d.Conns++
	attr := verbs.QPInitAttr{PD: c.pd, SendCQ: c.cq.cq, RecvCQ: c.cq.cq, SRQ: c.pool.srq, MaxSendWR: c.Depth, MaxSGE: 1, Context: c}
	if c.pool.srq == nil {
		attr.MaxRecvWR = receives
	}
	if c.QP, err = id.CreateQP(attr); err != nil {
		c.Release()
		return nil, err
	}
	c.l.Shares.join(c)
	if c.pool.srq == nil {
		if err := c.reserve(receives); err != nil {
			c.Stop()
			err = errors.Join(err, c.QP.Destroy())
			c.Release()
			return nil, err
		}
	}
	return c, nil
}

// Release gives back what a connection has of its device, which has given the queue pair back.
func (c *Conn) Release() {
	c.Device.Drain()
	if c.state == connReleased {
		return
	}
	c.Stop()
	c.setState(connReleased)
	c.l.Shares.leave(c)
	c.cq.Room += c.claim
	c.freeAll()
	if c.out != nil {
		c.out.close()
	}
	c.leave()
	c.Device.Conns--
	c.Device.vanish()
}

// Establish begins the flow of messages: Established has just been told.
func (c *Conn) Establish() {
	if c.Over() { // broken off meanwhile
		return
	}
	c.setState(connOpen)
	c.l.watch(c)
	c.update()
	c.l.Shares.again(c)
	if c.Arrivals != nil {
		c.Arrivals.tell()
		c.Arrivals.advance(false)
	}
}

// Receive takes a message of n bytes in chunk.
func (c *Conn) Receive(chunk *chunk, n int) {
	b := chunk.Bytes()[:n]
	if c.Over() {
		c.give(chunk)
		return
	}
	if c.mode == ModeMessages {
		h, err := wire.ParseHeader(b)
		if err == nil {
			err = c.Session.Take(h)
		}
		var from wire.Offer
		if err == nil && h.Type == wire.TypeOffer {
			from, err = wire.ParseOffer(b[wire.HeaderLen:], c.takes)
		}
		if err != nil {
			c.give(chunk)
			c.Up.BreakOff(err)
			return
		}
		if c.out != nil {
			c.out.pulled()
		}
		switch h.Type {
		case wire.TypeCredit, wire.TypeGoodbye, wire.TypeProbe, wire.TypeAnswer:
			c.give(chunk)
			c.Device.pump(c)
			c.observe()
			return
		case wire.TypeOffer:
			c.give(chunk)
			c.put(nil, nil, from)
			c.Arrivals.advance(false)
			if c.waits() {
				c.Device.pump(c)
			}
			return
		}
		b = b[wire.HeaderLen:]
	}
	chunk, b = c.keep(chunk, b)
	if c.state == connConnecting || c.Arrivals != nil && c.Arrivals.len() > 0 {
		c.put(chunk, b, wire.Offer{}) // at most our credits
		c.l.Shares.check(c)
		return
	}
	c.Up.Deliver(c.received(chunk, b))
	c.l.Shares.check(c)
	if c.mode == ModeMessages && c.waits() {
		c.Device.pump(c)
	}
}

// received makes the event of a message.
func (c *Conn) received(chunk *chunk, b []byte) *Inbound {
	m := c.l.newInbound()
	c.l.Shares.took(c, chunk)
	m.Data, m.Conn, m.Chunk = b, c, chunk
	return m
}

// put has a message wait.
func (c *Conn) put(chunk *chunk, b []byte, from wire.Offer) {
	if c.Arrivals == nil {
		c.Arrivals = &arrivals{c: c, from: sourceOf(c)}
	}
	c.Arrivals.put(c.received(chunk, b), from)
}

// waits reports whether news of the peer's credits can lead to anything.
func (c *Conn) waits() bool { return c.queue.len() > 0 || c.full || c.Closing() }

// Consumed takes a message back from the owner.
func (c *Conn) Consumed(m *Inbound) {
	m.Chunk.spoil(len(m.Data))
	c.give(m.Chunk)
	c.l.freeInbound(m)
	c.Session.Consume()
	if c.Over() || c.mode != ModeMessages {
		return
	}
	c.update()
	c.observe()
}

// update answers the peer's probe, and tells it how much was consumed, if that is due.
func (c *Conn) update() {
	if c.mode != ModeMessages || !c.sends() {
		return
	}
	for c.Flight.Len() < c.Depth {
		typ, flags, ok := c.Session.Next()
		if !ok {
			return
		}
		switch err := c.control(typ, flags); {
		case err == nil:
		case errors.Is(err, unix.ENOMEM):
			c.retry()
			return
		default:
			c.refused(verbs.Send, err)
			return
		}
	}
}

// Drain is Close's part: when everything sent was consumed, or in raw mode completed, the identifier
// is notified.
func (c *Conn) Drain() {
	c.setState(connDraining)
	c.l.Shares.again(c)
	c.Pump()
}

func (c *Conn) checkDrained() {
	if c.state != connDraining || c.queue.len() > 0 || c.Ops.N > 0 {
		return
	}
	if c.Flight.Len() > 0 || c.mode == ModeMessages && !c.Session.Settled() {
		return
	}
	c.setState(connDrained)
	c.Up.Drained()
}

// Stop ends the data path: what waits comes back as failed. What the device has, it flushes when the queue pair goes.
func (c *Conn) Stop() {
	switch {
	case c.Over():
		return
	case c.state == connConnecting:
		c.setState(connAborted)
	default:
		c.setState(connOver)
	}
	if c.patience != nil {
		c.patience.Stop()
	}
	c.unwatch()
	c.l.Shares.leave(c)
	for c.queue.len() > 0 {
		c.unsent++
		c.Up.SendFailed(c.queue.pop(), Flushed())
	}
	for c.Ops.N > 0 {
		o := c.Ops.pop()
		o.Owner.Ended(c, o, Flushed())
	}
	if c.Arrivals != nil {
		c.Arrivals.stop()
	}
	if c.out != nil {
		c.out.stop()
	}
}

// Fates counts sends by what became of them.
func (c *Conn) Fates(e *cmid.Closed) {
	e.Delivered = c.Session.Delivered()
	e.Unsent += c.unsent
	e.Unknown = c.left - e.Delivered
}

// Delivered is how many of what was posted the peer has said that its owner has consumed.
func (c *Conn) Delivered() uint64 { return c.Session.Delivered() }

// Posted is how many messages the device was handed.
func (c *Conn) Posted() uint64 { return c.left }

// Acknowledged reports whether the peer says what it has consumed.
func (c *Conn) Acknowledged() bool { return c.mode == ModeMessages }

// Kind is how messages travel.
func (c *Conn) Kind() Mode { return c.mode }

// MaxMessage is how many bytes a message that the peer takes has at most.
func (c *Conn) MaxMessage() int { return c.MaxSend }

// Attr is what the device can do.
func (c *Conn) Attr() *verbs.DeviceAttr { return &c.Device.attr }

// WaitingOps is how many one-sided operations wait for room in the send queue.
func (c *Conn) WaitingOps() int { return c.Ops.N }

// CatchUp handles what the device has completed.
func (c *Conn) CatchUp() { c.Device.Drain() }

// DeviceGone is told that the device has gone.
func (c *Conn) DeviceGone() { c.Device.remove() }

// BreakDown stops it because of err, which is the cause of its end; nil: the peer has gone, as it said.
func (c *Conn) BreakDown(err error) {
	c.broken = err
	c.Stop()
}

// BrokenBy is why this side has broken it off; nil: it has not.
func (c *Conn) BrokenBy() error { return c.broken }

func (c *Conn) observe() {
	if c.l.Observed {
		c.Up.Counted()
	}
}

// pathCounts are a connection's counts of messages. Without a hello only the last two are kept.
type pathCounts struct {
	Send     int // that may be sent before the peer has to consume some
	Unacked  int // sent, not known to be consumed
	Receive  int // that the peer may send before the owner has to consume some
	Unfreed  int // received, not consumed by the owner yet
	Queued   int // waiting for credits or for the device
	InFlight int // the device's: posted, not completed
}

func (c *Conn) Counts() pathCounts {
	n := pathCounts{Queued: c.queue.len(), InFlight: c.Flight.Len()}
	if c.mode == ModeMessages {
		s := &c.Session
		n.Send, n.Unacked, n.Unfreed = int(s.Window()), s.Unacked(), s.Unfreed()
		n.Receive = s.Granted() - n.Unfreed
	}
	return n
}
