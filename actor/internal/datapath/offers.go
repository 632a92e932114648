package datapath

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// offers has the large messages that a connection offers, from the memory for them until the peer
// has read them. They are in the connection's protection domain, so that no other peer can read
// them. A connection has one from its first large message on. Loop goroutine. Only its methods use
// its fields; it posts nothing.
//
// A large message of a secured connection is sealed before it is offered, one segment at a time
// (segments.go), and counts as posted from the start. All later messages wait for it, because
// records leave in order.
type offers struct {
	c      *Conn
	memory *memory.RegionCache // nil: the domain registers the messages themselves

	unread  ring.Ring[offered] // oldest first
	held    int                // bytes
	want    int                // bytes of the next message
	wait    bool               // memory for it is awaited
	granted bool               // there is memory for it
	sealing sealing            // of a secured connection
	queued  bool               // it awaits its turn to seal
	spent   []spent
	timer   *eventloop.Timer // of spent; nil until the first
}

// offered is a message that the peer may read: in a region of the cache, or in its own memory,
// which is registered.
type offered struct {
	send  *Outgoing // nil: answered
	chunk *memory.Chunk
	mr    *verbs.MR
}

// spent is a message whose own memory is no longer registered. A peer may report a Read before it
// has completed, and the answer may still be leaving. So the memory is used again only after a
// later posting has been sent, which leaves in the same order.
type spent struct {
	send  *Outgoing
	after uint32 // the number of the posting
}

// sealing is the large message that is being sealed.
type sealing struct {
	m      offered // its send is nil: none
	seal   *secure.LargeSeal
	number uint64
	done   bool // it is sealed, and the offer is to be posted
}

func newOffers(c *Conn) *offers {
	o := &offers{c: c}
	if _, ok := c.res.heapRegistrar(); !ok || c.Sec != nil {
		o.memory = memory.NewRegionCache(c.Device.Verbs, c.res.pd, verbs.RemoteRead, c.l.HeldBudget, true)
	}
	return o
}

// canOffer reports whether s may be offered now. If only memory is missing, the owner is pumped
// when there is some.
func (o *offers) canOffer(s *Outgoing) bool {
	if o.unread.Len() == wire.MaxOffers || o.wait || o.isSealing() {
		return false
	}
	if o.want = memory.RegionSize(o.readLength(s)); o.granted || o.c.l.HeldBudget.Admits((*offersClaim)(o)) {
		return true
	}
	o.wait = true
	return false
}

// readLength returns the bytes of s as the peer reads them.
func (o *offers) readLength(s *Outgoing) int {
	if o.c.Sec != nil {
		return secure.LargeLen(s.Len())
	}
	return s.Len()
}

// offersClaim is offers as the budget sees them.
type offersClaim offers

func (o *offersClaim) Claim() (want, held int) {
	if o.c.Over() {
		return 0, o.held
	}
	return o.want, o.held
}

func (o *offersClaim) Fair(int) bool { return true }

func (o *offersClaim) Grant() {
	o.wait, o.granted = false, true
	o.c.Pump()
	o.granted = false
}

// exposeMessage makes s, which is ready, a message that the peer can read.
func (o *offers) exposeMessage(s *Outgoing) (m offered, err error) {
	m.send = s
	if o.memory == nil {
		pd, _ := o.c.res.heapRegistrar()
		if m.mr, err = pd.Register(s.Bytes(), verbs.RemoteRead); err != nil {
			return m, err
		}
		o.c.l.HeldBudget.TakeLarge(m.budgetBytes())
	} else {
		if m.chunk, err = o.memory.Get(s.Len()); err != nil {
			return m, err
		}
		copy(m.chunk.Bytes(), s.Bytes())
	}
	o.held += m.budgetBytes()
	return m, nil
}

// offerPosted notes that the offer of m was posted.
func (o *offers) offerPosted(m offered) {
	o.unread.Push(m)
	o.granted = false // used
}

// hasUnread reports whether the peer has something to read. o may be nil.
func (o *offers) hasUnread() bool { return o != nil && o.unread.Len() > 0 }

func (m *offered) region() *verbs.MR {
	if m.mr != nil {
		return m.mr
	}
	return m.chunk.SGE.MR
}

// wireOffer describes m to the peer. number is the message's, if it is sealed.
func (m *offered) wireOffer(number uint64) wire.Offer {
	return wire.Offer{Length: uint32(m.send.Len()), Key: m.region().RKey, Addr: m.region().Addr, Number: number}
}

// budgetBytes returns the bytes that m takes of the budget.
func (m *offered) budgetBytes() int { return memory.RegionSize(len(m.region().Bytes)) }

// releaseOffer releases the memory of m.
func (o *offers) releaseOffer(m offered) {
	n := m.budgetBytes()
	o.held -= n
	if m.chunk != nil {
		m.chunk.Free()
		return
	}
	_ = o.c.Device.Verbs.Free(m.mr) // nothing that is posted names it
	o.c.l.HeldBudget.GiveLarge(n)
}

// releaseRead ends the oldest offers until only unread are left: the peer has read them.
func (o *offers) releaseRead(unread int) {
	for o.unread.Len() > unread {
		m := o.unread.Pop()
		o.releaseOffer(m)
		s := m.send
		if s.notify {
			o.c.identifier.Sent(s)
		}
		switch {
		case m.chunk != nil:
			s.Recycle()
		case !o.c.res.area.isShared(): // else other peers may still read it
			o.keepSpent(s)
		}
	}
}

// spendFor is how long the memory of a message that was read waits for a later posting.
const spendFor = 100 * time.Millisecond

// keepSpent keeps s until its memory may be used again: when the next posting has been sent.
func (o *offers) keepSpent(s *Outgoing) {
	o.spent = append(o.spent, spent{s, o.c.Out.Flight.nextNumber()})
	if o.timer == nil {
		o.timer = o.c.l.el.NewTimer(o.dropSpent)
	}
	o.timer.Reset(spendFor)
}

// recycleSpent recycles the messages that nothing can be sent from anymore.
func (o *offers) recycleSpent() {
	n := 0
	for n < len(o.spent) && o.c.Out.Flight.hasCompleted(o.spent[n].after) {
		o.spent[n].send.Recycle()
		n++
	}
	o.spent = slices.Delete(o.spent, 0, n)
}

// dropSpent leaves the messages without a later posting to the garbage collector.
func (o *offers) dropSpent() { o.spent = nil }

// failUnread reports the messages that the peer has not read, as far as is known, as failed. The
// memory stays until the queue pair is gone.
func (o *offers) failUnread() {
	o.sealAbandon()
	for i := range o.unread.Len() {
		m := o.unread.At(i)
		if m.mr != nil {
			m.send.class = -1 // a peer may still be reading it
		}
		o.c.identifier.SendFailed(m.send, Flushed())
		m.send = nil
	}
	if o.wait {
		o.wait = false
		o.c.l.HeldBudget.Leave((*offersClaim)(o))
	}
}

// releaseRest releases the memory that failUnread has left: the queue pair is gone.
func (o *offers) releaseRest() {
	for o.unread.Len() > 0 {
		o.releaseOffer(o.unread.Pop())
	}
	if o.memory != nil {
		o.memory.Close()
	}
	if o.timer != nil {
		o.timer.Stop()
	}
	o.spent = nil
}

// sealBegin starts to seal s, which is ready.
func (o *offers) sealBegin(s *Outgoing, ch *secure.Channel) (err error) {
	m := offered{send: s}
	if m.chunk, err = o.memory.Get(o.readLength(s)); err != nil {
		return err
	}
	o.held += m.budgetBytes()
	o.granted = false // used
	seal, number, err := ch.SealLarge.Begin(m.chunk.Bytes(), s.Bytes())
	if err != nil {
		o.releaseOffer(m)
		return err
	}
	o.sealing = sealing{m: m, seal: seal, number: number}
	o.sealSchedule()
	return nil
}

// sealSchedule asks for a turn to seal a segment.
func (o *offers) sealSchedule() {
	if !o.queued {
		o.queued = true
		o.c.l.segments.addJob(o)
	}
}

// segmentBytes implements job.
func (o *offers) segmentBytes() int {
	if s := &o.sealing; s.m.send != nil && !s.done && !o.c.Over() {
		return s.seal.Ahead()
	}
	return 0
}

// runSegment seals a segment.
func (o *offers) runSegment() {
	o.queued = false
	s := &o.sealing
	if s.m.send == nil || s.done || o.c.Over() {
		return
	}
	if s.seal.Next() {
		o.sealSchedule()
		return
	}
	s.done = true
	o.c.Pump()
}

// isSealing reports whether a message is being sealed, or its offer waits for room. o may be nil.
func (o *offers) isSealing() bool { return o != nil && o.sealing.m.send != nil }

// sealedOffer returns the offer of the message that is sealed. Not ok: it is not sealed yet.
func (o *offers) sealedOffer() (from wire.Offer, ok bool) {
	if s := &o.sealing; s.done {
		return s.m.wireOffer(s.number), true
	}
	return from, false
}

// sealedPosted notes that the offer of the sealed message was posted.
func (o *offers) sealedPosted() {
	o.unread.Push(o.sealing.m)
	o.sealing = sealing{}
}

// sealAbandon reports the message that is being sealed as failed. Its memory is free, as the peer
// does not know of it.
func (o *offers) sealAbandon() {
	if !o.isSealing() {
		return
	}
	m := o.sealing.m
	o.sealing = sealing{}
	s := m.send
	o.releaseOffer(m)
	o.c.identifier.SendFailed(s, Flushed())
}

// offerMessage posts the offer of s, which is ready, or starts to seal s.
func (out *sending) offerMessage(s *Outgoing) error {
	if out.c.Sec != nil {
		return out.offers.sealBegin(s, out.c.Sec.channel)
	}
	m, err := out.offers.exposeMessage(s)
	if err != nil {
		return err
	}
	var b [wire.HeaderLen + wire.OfferLen]byte
	out.c.Session.Header(wire.TypeOffer, 0).Put(b[:])
	m.wireOffer(0).Put(b[wire.HeaderLen:])
	if err := out.c.Device.postMessage(out.c, nil, b[:], false); err != nil {
		out.offers.releaseOffer(m)
		return err
	}
	out.offers.offerPosted(m)
	out.c.l.Shares.resumeOrWait(out.c)
	return nil
}

// offerSealed posts the offer of a message that was sealed, if there is one. Not ok: nothing may be
// posted before it.
func (out *sending) offerSealed() (ok bool) {
	if !out.offers.isSealing() {
		return true
	}
	from, ok := out.offers.sealedOffer()
	if !ok || !out.Flight.hasRoom() {
		return false
	}
	var b [wire.HeaderLen + wire.SecuredOfferLen]byte
	out.c.Session.Header(wire.TypeOffer, 0).Put(b[:])
	from.PutSecured(b[wire.HeaderLen:])
	switch err := out.c.Device.postMessage(out.c, nil, b[:], false); {
	case errors.Is(err, unix.ENOMEM):
		out.pumpLater()
		return false
	case err != nil: // the connection was broken off
		return false
	}
	out.offers.sealedPosted()
	out.c.l.Shares.resumeOrWait(out.c)
	out.c.Session.Sent(wire.TypeOffer, 0)
	out.c.reportCounts()
	return true
}
