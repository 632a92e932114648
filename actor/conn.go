package actor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// conn is an identifier's data path: its queue pair, its credits, what waits to be sent. Loop goroutine.
type conn struct {
	id     *cmid.ID
	up     upper
	l      *pathLoop
	terms  terms
	d      *device
	pd     verbs.PD // the queue pair's
	dom    *domain  // of what it receives into and sends from
	qp     verbs.QP
	pool   *recvPool
	recv   intake
	cq     *completions
	mode   wireMode
	state  connState
	broken error // why this side has broken it off; nil: it has not

	suspect  *QueuePairError  // what speaks for a queue pair that is dead; nil: nothing
	patience *eventloop.Timer // until it is broken off because of that

	parting parting // our own
	beat    heartbeat
	waved   uint32 // its number in flight

	regions []*verbs.MR // in pd, of one-sided operations

	queue sendQueue
	in    *arrivals // nil: no message has had to wait
	out   *offers   // nil: no large message was sent
	ops   opQueue
	seq   uint32 // of what was queued last, of both

	maxSend  int    // bytes the peer takes
	eager    int    // bytes that are sent at once; what is larger is offered
	takes    int    // bytes that the peer may offer
	reads    uint32 // that may be under way
	depth    int    // of the send queue
	claim    int    // of completions
	flight   flight
	session  wire.Session // of messages; of other modes what WithMessages grants
	full     bool         // ErrQueueFull was told: Writable is due
	due      bool         // in the device's list of what to pump
	retrying bool         // pump will be called

	unsent uint64
	left   uint64 // handed to the device
}

// wireMode is how messages travel.
type wireMode uint8

const (
	modeMessages wireMode = iota // hello, headers, credits
	modeRaw                      // because the owner wants it
	modeForeign                  // because the peer has no hello
)

func (m wireMode) String() string {
	switch m {
	case modeRaw:
		return "raw"
	case modeForeign:
		return "raw (foreign peer)"
	}
	return "messages"
}

// newConn makes the queue pair of id, which needs a device (after ResolveRoute, or on a request), and what it receives into.
func newConn(l *pathLoop, id *cmid.ID, up upper, t terms) (*conn, error) {
	dev := id.Device()
	if dev == nil {
		return nil, fmt.Errorf("the identifier has no device: %w", unix.ENODEV)
	}
	d := l.deviceOf(dev)
	c := &conn{id: id, up: up, l: l, terms: t, d: d, mode: t.mode}
	size := min(t.messages, maxRawMessage)
	c.maxSend, c.eager = size, size
	c.depth = t.sendsUnderWay(d.attr.AsksForReceives)
	if limit := d.attr.MaxQPWR; limit > 0 {
		c.depth = min(c.depth, limit)
	}
	c.session = wire.NewSession(t.credits)
	if t.mode == modeMessages {
		h := l.hello(&t, d.attr)
		size = h.Eager + wire.HeaderLen
		c.takes, c.reads, c.eager = h.MaxMessage, readsMax, h.Eager
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
	if c.cq, err = d.completions(c.depth + receives); err != nil {
		c.leave()
		return nil, err
	}
	c.claim = c.depth + receives
	d.conns++
	attr := verbs.QPInitAttr{PD: c.pd, SendCQ: c.cq.cq, RecvCQ: c.cq.cq, SRQ: c.pool.srq, MaxSendWR: c.depth, MaxSGE: 1, Context: c}
	if c.pool.srq == nil {
		attr.MaxRecvWR = receives
	}
	if c.qp, err = id.CreateQP(attr); err != nil {
		c.release()
		return nil, err
	}
	c.l.shares.join(c)
	if c.pool.srq == nil {
		if err := c.reserve(receives); err != nil {
			c.stop()
			err = errors.Join(err, c.qp.Destroy())
			c.release()
			return nil, err
		}
	}
	return c, nil
}

// release gives back what a connection has of its device, which has given the queue pair back.
func (c *conn) release() {
	c.d.drain()
	if c.state == connReleased {
		return
	}
	c.stop()
	c.setState(connReleased)
	c.l.shares.leave(c)
	c.cq.room += c.claim
	c.freeAll()
	if c.out != nil {
		c.out.close()
	}
	c.leave()
	c.d.conns--
	c.d.vanish()
}

// establish begins the flow of messages: Established has just been told.
func (c *conn) establish() {
	if c.over() { // broken off meanwhile
		return
	}
	c.setState(connOpen)
	c.l.watch(c)
	c.update()
	c.l.shares.again(c)
	if c.in != nil {
		c.in.tell()
		c.in.advance(false)
	}
}

// receive takes a message of n bytes in chunk.
func (c *conn) receive(chunk *chunk, n int) {
	b := chunk.bytes()[:n]
	if c.over() {
		c.give(chunk)
		return
	}
	if c.mode == modeMessages {
		h, err := wire.ParseHeader(b)
		if err == nil {
			err = c.session.Take(h)
		}
		var from wire.Offer
		if err == nil && h.Type == wire.TypeOffer {
			from, err = wire.ParseOffer(b[wire.HeaderLen:], c.takes)
		}
		if err != nil {
			c.give(chunk)
			c.up.BreakOff(err)
			return
		}
		if c.out != nil {
			c.out.pulled()
		}
		switch h.Type {
		case wire.TypeCredit, wire.TypeGoodbye, wire.TypeProbe, wire.TypeAnswer:
			c.give(chunk)
			c.d.pump(c)
			c.observe()
			return
		case wire.TypeOffer:
			c.give(chunk)
			c.put(nil, nil, from)
			c.in.advance(false)
			if c.waits() {
				c.d.pump(c)
			}
			return
		}
		b = b[wire.HeaderLen:]
	}
	chunk, b = c.keep(chunk, b)
	if c.state == connConnecting || c.in != nil && c.in.len() > 0 {
		c.put(chunk, b, wire.Offer{}) // at most our credits
		c.l.shares.check(c)
		return
	}
	c.up.Deliver(c.received(chunk, b))
	c.l.shares.check(c)
	if c.mode == modeMessages && c.waits() {
		c.d.pump(c)
	}
}

// received makes the event of a message.
func (c *conn) received(chunk *chunk, b []byte) *inbound {
	m := c.l.newInbound()
	c.l.shares.took(c, chunk)
	m.data, m.conn, m.chunk = b, c, chunk
	return m
}

// put has a message wait.
func (c *conn) put(chunk *chunk, b []byte, from wire.Offer) {
	if c.in == nil {
		c.in = &arrivals{c: c, from: sourceOf(c)}
	}
	c.in.put(c.received(chunk, b), from)
}

// waits reports whether news of the peer's credits can lead to anything.
func (c *conn) waits() bool { return c.queue.len() > 0 || c.full || c.closing() }

// consumed takes a message back from the owner.
func (c *conn) consumed(m *inbound) {
	m.chunk.spoil(len(m.data))
	c.give(m.chunk)
	c.l.freeInbound(m)
	c.session.Consume()
	if c.over() || c.mode != modeMessages {
		return
	}
	c.update()
	c.observe()
}

// update answers the peer's probe, and tells it how much was consumed, if that is due.
func (c *conn) update() {
	if c.mode != modeMessages || !c.sends() {
		return
	}
	for c.flight.len() < c.depth {
		typ, flags, ok := c.session.Next()
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

// drain is Close's part: when everything sent was consumed, or in raw mode completed, the identifier
// is notified.
func (c *conn) drain() {
	c.setState(connDraining)
	c.l.shares.again(c)
	c.pump()
}

func (c *conn) checkDrained() {
	if c.state != connDraining || c.queue.len() > 0 || c.ops.n > 0 {
		return
	}
	if c.flight.len() > 0 || c.mode == modeMessages && !c.session.Settled() {
		return
	}
	c.setState(connDrained)
	c.up.Drained()
}

// stop ends the data path: what waits comes back as failed. What the device has, it flushes when the queue pair goes.
func (c *conn) stop() {
	switch {
	case c.over():
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
	c.l.shares.leave(c)
	for c.queue.len() > 0 {
		c.unsent++
		c.up.SendFailed(c.queue.pop(), flushed())
	}
	for c.ops.n > 0 {
		o := c.ops.pop()
		o.who.Ended(c, o, flushed())
	}
	if c.in != nil {
		c.in.stop()
	}
	if c.out != nil {
		c.out.stop()
	}
}

// fates counts sends by what became of them.
func (c *conn) fates(e *cmid.Closed) {
	e.Delivered = c.session.Delivered()
	e.Unsent += c.unsent
	e.Unknown = c.left - e.Delivered
}

// delivered is how many of what was posted the peer has said that its owner has consumed.
func (c *conn) delivered() uint64 { return c.session.Delivered() }

// posted is how many messages the device was handed.
func (c *conn) posted() uint64 { return c.left }

// acknowledged reports whether the peer says what it has consumed.
func (c *conn) acknowledged() bool { return c.mode == modeMessages }

// kind is how messages travel.
func (c *conn) kind() wireMode { return c.mode }

// maxMessage is how many bytes a message that the peer takes has at most.
func (c *conn) maxMessage() int { return c.maxSend }

// attr is what the device can do.
func (c *conn) attr() *verbs.DeviceAttr { return &c.d.attr }

// waitingOps is how many one-sided operations wait for room in the send queue.
func (c *conn) waitingOps() int { return c.ops.n }

// catchUp handles what the device has completed.
func (c *conn) catchUp() { c.d.drain() }

// deviceGone is told that the device has gone.
func (c *conn) deviceGone() { c.d.remove() }

// breakDown stops it because of err, which is the cause of its end; nil: the peer has gone, as it said.
func (c *conn) breakDown(err error) {
	c.broken = err
	c.stop()
}

// brokenBy is why this side has broken it off; nil: it has not.
func (c *conn) brokenBy() error { return c.broken }

func (c *conn) observe() {
	if c.l.observed {
		c.up.Counted()
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

func (c *conn) counts() pathCounts {
	n := pathCounts{Queued: c.queue.len(), InFlight: c.flight.len()}
	if c.mode == modeMessages {
		s := &c.session
		n.Send, n.Unacked, n.Unfreed = int(s.Window()), s.Unacked(), s.Unfreed()
		n.Receive = s.Granted() - n.Unfreed
	}
	return n
}
