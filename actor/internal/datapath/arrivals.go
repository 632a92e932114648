package datapath

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// queueMessage queues a message, or an offer of one.
func (b *arrivals) queueMessage(m *Inbound, from wire.Offer) {
	m.Since = time.Now() // not the loop's, which may be a long turn old
	p := pending{m: m, from: from, length: from.Length, number: from.Number}
	if b.c.Sec != nil {
		p.from.Length = uint32(secure.LargeLen(int(from.Length)))
	}
	b.Waiting.Push(p)
}

// toRead returns the oldest offer that is not requested completely.
func (b *arrivals) toRead() *pending {
	for ; b.next < b.Waiting.Len(); b.next++ {
		if a := b.Waiting.At(b.next); a.asked < a.from.Length {
			return a
		}
	}
	return nil
}

// pop removes the oldest.
func (b *arrivals) pop() pending {
	b.next = max(b.next-1, 0)
	return b.Waiting.Pop()
}

// readOffers reads offers as far as there is memory for them. granted: the budget has memory for
// the next offer.
func (b *arrivals) readOffers(granted bool) {
	c := b.c
	for c.Flows() && !b.ended && b.Begun-b.Done < ReadsMax {
		a := b.toRead()
		if a == nil || b.wait {
			break
		}
		if a.m.Chunk == nil {
			if !granted && !c.l.RecvBudget.Admits(b) {
				b.wait = true
				break
			}
			granted = false
			if !b.allotMemory(a) {
				break
			}
		}
		n := min(ReadPart, a.from.Length-a.asked)
		o := &b.reads[b.Begun%ReadsMax]
		*o = OneSided{
			Op: verbs.Read, Near: verbs.SGE{MR: a.m.Chunk.SGE.MR, Offset: a.m.Chunk.SGE.Offset + a.asked, Length: n},
			Addr: a.from.Addr + uint64(a.asked), RKey: a.from.Key, Issuer: b,
		}
		a.asked += n
		b.Begun++
		c.Session.Reading(true)
		if err := c.OneSided(o); err != nil {
			b.Done++ // it was not taken: the connection is over
			break
		}
	}
	b.watchReads()
}

// allotMemory takes memory for an offer. Not ok: the device has none, and is asked again.
func (b *arrivals) allotMemory(a *pending) (ok bool) {
	chunk, err := b.c.res.dom.sinks.Get(int(a.from.Length))
	if err != nil {
		b.c.l.log.Warn("rdma: no memory for a large message", "device", b.c.Device.Verbs.Name(), "err", err)
		b.wait = true
		b.c.l.el.AfterFunc(RetryAfter, func() {
			b.wait = false
			b.readOffers(false)
		})
		return false
	}
	a.m.Chunk = chunk
	b.c.l.Shares.large += chunk.Size()
	b.c.In.person.takeLarge(chunk.Size())
	a.m.Data = chunk.Bytes()[:a.length:a.length]
	b.held += int(chunk.SGE.Length)
	if b.filling == 0 {
		b.since = b.c.l.el.Now()
	}
	b.filling++
	b.c.res.dom.sinks.Fill()
	b.c.l.Sources.Fill(b.from, int(chunk.SGE.Length))
	return true
}

// endFilling ends the reading into chunk.
func (b *arrivals) endFilling(chunk *memory.Chunk) {
	b.filling--
	b.c.res.dom.sinks.Filled()
	b.c.l.Sources.Filled(b.from, int(chunk.SGE.Length))
}

// stopReading ends the reading of offers: the connection has ended. A peer whose offers were still
// being read has kept memory from others. Its fault ends with ReadPatience: anything longer means
// that this side stood still.
func (b *arrivals) stopReading() {
	if b.filling > 0 {
		b.c.l.Sources.Wasted(b.from, min(b.c.l.el.Now().Sub(b.since), ReadPatience+ReadPatience/readLooks))
	}
	b.releaseWaiting()
}

// Claim implements memory.Claimant.
func (b *arrivals) Claim() (want, held int) {
	if a := b.toRead(); a != nil && a.m.Chunk == nil && !b.c.Over() {
		return memory.RegionSize(int(a.from.Length)), b.held
	}
	return 0, b.held
}

// Fair implements memory.Claimant.
func (b *arrivals) Fair(want int) bool {
	return b.c.l.Sources.Lets(b.from, want) && b.c.In.person.hasRoomFor(want)
}

// Grant implements memory.Claimant.
func (b *arrivals) Grant() {
	b.wait = false
	b.readOffers(true)
}

// Ended implements OpIssuer. Reads end in order, so its bytes belong to the oldest offer that is
// incomplete.
func (b *arrivals) Ended(c *Conn, _ *OneSided, err error) {
	b.Done++
	c.Session.Reading(b.Begun != b.Done)
	if c.Over() {
		b.releaseWaiting()
		return
	}
	switch {
	case err == nil:
	case errors.Is(err, ErrRemoteAccess):
		c.identifier.BreakOff(&wire.ProtocolError{What: fmt.Sprintf("an offer cannot be read: %v", err)})
		return
	case !errors.Is(err, ErrFlushed): // refused by this side's device: no fault of the peer's
		c.identifier.BreakOff(&QueuePairError{Op: verbs.Read, Err: err})
		return
	default: // the cause of the end is reported elsewhere
		b.ended = true
		return
	}
	i, a := 0, b.Waiting.At(0)
	for a.came == a.from.Length {
		i++
		a = b.Waiting.At(i)
	}
	a.came += min(ReadPart, a.from.Length-a.came)
	b.since = c.l.el.Now()
	if a.came == a.from.Length {
		b.endFilling(a.m.Chunk)
		c.Session.Pull()
		switch {
		case c.Sec != nil:
			if err := b.beginOpening(a); err != nil {
				c.identifier.BreakOff(err)
				return
			}
		case i == 0:
			b.deliverReady()
		}
	}
	b.readOffers(false)
	c.Device.queuePump(c)
}

// Abandoned implements OpIssuer. A Read has no sender to answer.
func (b *arrivals) Abandoned(*Conn, *OneSided) {}

// deliverReady delivers the messages up to the first offer that is still to be read.
func (b *arrivals) deliverReady() {
	for b.Waiting.Len() > 0 && b.c.Flows() {
		if next := b.Waiting.At(0); next.came < next.from.Length || next.open != nil {
			return
		}
		a := b.pop()
		if a.from.Length > 0 {
			b.c.traffic.largeReceived()
		}
		b.c.In.deliverInbound(a.m)
	}
}

// releaseConsumed frees the memory of a consumed message.
func (b *arrivals) releaseConsumed(c *memory.Chunk) {
	b.held -= int(c.SGE.Length)
	c.Free()
}

// releaseWaiting releases the messages that will not be delivered. The device keeps the memory that
// it reads into until its Reads have ended.
func (b *arrivals) releaseWaiting() {
	if b.Begun != b.Done {
		return
	}
	if b.timer != nil {
		b.timer.Stop()
	}
	for b.Waiting.Len() > 0 {
		a := b.pop()
		if a.m.Chunk != nil {
			if a.came < a.from.Length {
				b.endFilling(a.m.Chunk)
			}
			b.c.In.reuseReceive(a.m.Chunk)
		}
		b.c.l.freeInbound(a.m)
	}
	if b.wait {
		b.c.l.RecvBudget.Leave(b)
	}
}

// watchReads starts the timer that ends a connection whose peer does not answer Reads.
func (b *arrivals) watchReads() {
	if b.armed || b.Begun == b.Done {
		return
	}
	if b.timer == nil {
		b.timer = b.c.l.el.NewTimer(b.checkReads)
	}
	b.armed, b.seen, b.silent = true, b.Done, 0
	b.timer.Reset(ReadPatience / readLooks)
}

// checkReads ends a connection whose peer has not answered a Read. It counts fruitless looks
// instead of the time: while this side's loop was blocked, or its machine suspended, the peer's
// data was not read.
func (b *arrivals) checkReads() {
	b.armed = false
	if b.Begun != b.Done && b.seen == b.Done {
		if b.silent++; b.silent < readLooks {
			b.armed = true
			b.timer.Reset(ReadPatience / readLooks)
			return
		}
		b.c.identifier.BreakOff(&wire.ProtocolError{What: fmt.Sprintf("a Read of what was offered was not answered within %v", ReadPatience)})
		return
	}
	b.watchReads()
}

// beginOpening begins to open a message that was read.
func (b *arrivals) beginOpening(a *pending) (err error) {
	chunk := a.m.Chunk.Bytes()
	if a.open, err = b.c.Sec.channel.OpenLarge.Begin(chunk, len(a.m.Data), a.number); err == nil {
		b.scheduleOpening()
	}
	return err
}

func (b *arrivals) scheduleOpening() {
	if !b.queued {
		b.queued = true
		b.c.l.segments.addJob(b)
	}
}

// toOpen returns the oldest message that is to be opened, or nil.
func (b *arrivals) toOpen() *pending {
	for i := range b.Waiting.Len() {
		if a := b.Waiting.At(i); a.open != nil {
			return a
		}
	}
	return nil
}

// segmentBytes implements job.
func (b *arrivals) segmentBytes() int {
	if a := b.toOpen(); a != nil && !b.c.Over() {
		return a.open.Ahead()
	}
	return 0
}

// runSegment opens a segment of the oldest message that is to be opened.
func (b *arrivals) runSegment() {
	b.queued = false
	a := b.toOpen()
	if a == nil || b.c.Over() {
		return
	}
	b.scheduleOpening() // the rest, or the next message
	switch more, err := a.open.Next(); {
	case more:
	case err != nil:
		b.c.identifier.BreakOff(err)
	default:
		a.open = nil
		b.deliverReady()
		b.c.Device.queuePump(b.c)
		b.c.Pump()
	}
}
