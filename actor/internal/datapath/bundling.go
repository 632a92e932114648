package datapath

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/internal/ring"
)

// Messages that wait for the same connection leave together, several of them in one Send
// (docs/wire.md, Bundles). A Send and a receive cost more than a small message. Nothing waits for a
// bundle to fill:
//
//   - A message that finds nothing in flight is posted immediately, alone.
//   - One that finds something in flight waits until the end of the loop's turn (gathering), with
//     those that follow it.
//   - Messages that wait for credits, or for room in the device, are bundled when they may go.
//
// Messages of more than bundledMost bytes, offers, and messages with a renew go alone.

const (
	// bundleMost is the size of the largest bundle, in bytes. docs/latency.md has the measurements.
	bundleMost = 32<<10 - secure.Overhead
	// bundledMost is the largest message, in bytes, that is copied into a bundle.
	bundledMost = 4 << 10
	// bundlesMost is the memory of the bundles in flight, in bytes, from which on messages wait
	// instead of leaving in bundles. More memory would be registered for a burst, and released
	// again behind it.
	bundlesMost = 16 * bundleMost
)

// gathering contains the connections of a loop whose messages wait for the end of the turn.
type gathering struct {
	l     *Loop
	conns ring.Ring[*sending]
	due   bool // it is deferred, and Run has not begun
}

// mustGather reports whether a message that may go in a bundle is to wait for the end of the turn.
func (out *sending) mustGather() bool {
	return out.queue.gathers || out.Flight.Len() > 0 && out.queue.isEmpty() && out.canPostNow()
}

// leadsBundle reports whether o is the first of several messages that were posted together. o may
// be nil.
func (o *Outgoing) leadsBundle() bool { return o != nil && o.next != nil }

// canBundle reports whether o may go in a bundle.
func (o *Outgoing) canBundle() bool { return o.renew == nil && o.Len() <= bundledMost }

// postGathered posts the messages that were gathered, as far as device and peer have room for them.
func (out *sending) postGathered() {
	if !out.queue.gathers {
		return
	}
	out.queue.gathers = false
	for out.c.mayPost() && out.postNext() {
	}
	if out.queue.messages.Len() > 0 {
		out.creditWaitNeeded()
		out.c.l.Shares.resumeOrWait(out.c)
	}
	out.sendUpdates()
}

// addConn makes out post its gathered messages at the end of the turn, or before something that
// must not overtake them.
func (g *gathering) addConn(out *sending) {
	if out.queue.gathered {
		return
	}
	out.queue.gathered = true
	g.conns.Push(out)
	if !g.due {
		g.due = true
		g.l.el.Defer(g)
	}
}

// Run ends a turn's gathering.
func (g *gathering) Run(int) (more bool) {
	g.due = false
	for g.conns.Len() > 0 {
		out := g.conns.Pop()
		out.queue.gathered = false
		out.postGathered()
	}
	return false
}

// LoopName names it in the loop's reports of stalls.
func (g *gathering) LoopName() string { return "messages of a turn" }

// bundle describes the Send of the oldest messages of a queue.
type bundle struct {
	n     int  // messages; 0: the next Send is no bundle
	size  int  // bytes
	quiet bool // another Send follows, and one completion is enough for both
}

// bundleNext returns the next Send. o shows that the oldest message may go.
func (out *sending) bundleNext(o *outlook) (b bundle) {
	q := &out.queue
	if q.messages.Len() < 2 || o.window < 2 || !out.c.Session.Bundles() {
		return b
	}
	most, limit := min(q.messages.Len(), int(o.window), wire.MaxBundle), out.bundleLimit()
	alone := false
	for b.size = wire.HeaderLen; b.n < most; b.n++ {
		s := *q.messages.At(b.n)
		size := b.size + wire.BundledLen + s.Len()
		if !s.canBundle() || size > limit || o.ops && int32(o.opSeq-s.seq) < 0 {
			break
		}
		b.size = size
		alone = alone || s.notify
	}
	if b.n < 2 {
		return bundle{}
	}
	// as outlook.isFollowed for a single message
	b.quiet = !alone && !o.ops && b.n < min(q.messages.Len(), int(o.window)) && out.followsDirectly(*q.messages.At(b.n)) &&
		o.posted+1 < o.depth && o.silent+1 < completionBatch(min(o.depth, bundlesMost/limit))
	return b
}

// followsDirectly reports whether s, the message behind a bundle, may go as soon as there is a
// credit and room: it is not renewed, nor offered.
func (out *sending) followsDirectly(s *Outgoing) bool {
	return s.canBundle() && s.Len() <= out.sizes.direct
}

// bundleLimit returns the size of the largest bundle that may leave now, in bytes.
func (out *sending) bundleLimit() int { return min(wire.HeaderLen+out.sizes.direct, bundleMost) }

// mayPostBundle reports whether a bundle may be posted now. If not, a completion will make room,
// and the queue has room until then.
func (out *sending) mayPostBundle() bool {
	return out.Flight.bundled < bundlesMost || !out.Flight.willComplete() || out.queue.messages.Len() >= out.c.l.limits.Queue
}

// postBundle hands the oldest b.n messages to the device. Not ok: it has no room, and they are back
// in the queue.
func (out *sending) postBundle(b bundle) (ok bool) {
	first := out.queue.popMessages(b.n)
	switch err := out.c.Device.postBundle(out.c, first, b); {
	case err == nil:
		out.c.traffic.bundleSent(b.n, b.size-wire.HeaderLen-b.n*wire.BundledLen)
		out.c.Session.SentBundle(b.n)
		out.c.reportCounts()
	case errors.Is(err, errNoRoom):
		out.queue.returnMessages(first) // a completion makes room
		out.c.l.Shares.resumeOrWait(out.c)
		out.pumpLater()
		return false
	case errors.Is(err, unix.ENOMEM): // others have the memory: one message needs less, or none
		out.queue.returnMessages(first)
		return out.postMessage(out.queue.popMessage(), false)
	default:
		out.failUnsent(first, err)
	}
	return true
}

// postBundle posts the chain of messages that begins with first as b describes it.
func (d *Device) postBundle(c *Conn, first *Outgoing, b bundle) error {
	h := c.Session.Header(wire.TypeBundle, 0)
	if c.Sec != nil || b.size <= d.attr.MaxInline {
		d.bundled = first.appendBundle(d.bundled[:0], h)
		return d.postMessage(c, first, d.bundled, b.quiet)
	}
	chunk, err := c.Out.sendChunk(first, b.size)
	if err != nil {
		return err
	}
	first.appendBundle(chunk.Bytes()[:0], h)
	d.prepareSend(b.quiet)
	return d.postChunk(c, Posting{Send: first}, chunk, b.size)
}

// appendBundle appends a bundle of the messages of the chain that begins with o.
func (o *Outgoing) appendBundle(b []byte, h wire.Header) []byte {
	b = append(b, make([]byte, wire.HeaderLen)...)
	h.Put(b[len(b)-wire.HeaderLen:])
	for ; o != nil; o = o.next {
		b = wire.AppendBundled(b, o.Bytes())
	}
	return b
}

// unbundling is a bundle of a peer whose messages are being delivered. The zero value is none.
type unbundling struct {
	c     *Conn
	chunk *memory.Chunk // nil: there is none
	rest  []byte        // messages that were not delivered yet
	count int           // messages that were, of all bundles
}

// bundledTurn is the number of messages of bundles that count as one in Device.pollCompletions. So
// a turn handles 2,048 of them.
const bundledTurn = 32

// unbundleBegin begins to deliver the n messages in b, a part of chunk.
func (d *Device) unbundleBegin(c *Conn, chunk *memory.Chunk, b []byte, n int) {
	chunk.Share(n, wire.HeaderLen+len(b))
	d.l.Shares.countReceived(c, chunk, n)
	if c.In.qp != nil {
		c.In.qp.Contained(n)
	}
	d.unbundling = unbundling{c, chunk, b, d.unbundling.count}
}

// unbundleNext delivers the next message. It may not return, and may call pollCompletions, which
// then continues with the message behind it. It returns how many completions that counts as.
func (d *Device) unbundleNext() (completions int) {
	u := &d.unbundling
	c, chunk := u.c, u.chunk
	var b []byte
	b, u.rest = wire.CutBundled(u.rest)
	last := len(u.rest) == 0
	if last {
		*u = unbundling{count: u.count}
	}
	if u.count++; u.count%bundledTurn == 0 {
		completions = 1
	}
	if c.Over() {
		c.In.reuseReceive(chunk)
		return completions
	}
	c.In.resize.noteDemand(len(b), false)
	m := c.In.fillInbound(c.In.keepOrCopy(chunk, b))
	if c.In.mustQueue() {
		c.In.queueMessage(m, wire.Offer{}) // at most our credits
	} else {
		c.In.deliverInbound(m)
	}
	if last {
		c.l.Shares.pauseIfOver(c)
		if c.Out.awaitsCredits() {
			d.queuePump(c)
		}
	}
	return completions
}
