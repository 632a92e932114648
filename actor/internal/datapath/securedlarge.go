package datapath

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// A large message of a secured connection is sealed before it is offered, and opened when all of it
// was read: a segment a turn, so that the loop's other connections wait for no more than that. What
// follows it waits: on the sending side because records leave in order, on the receiving side as
// behind every offer.

// sealing is the large message that is being sealed. From its beginning on it counts as posted.
type sealing struct {
	m      offered // its send is nil: there is none
	seal   *secure.LargeSeal
	number uint64
	done   bool // all of it is sealed, and the offer is to be posted
}

// begin begins to seal s, which is ready.
func (o *offers) begin(s *Outgoing) error {
	m, err := o.sealed(s)
	if err != nil {
		return err
	}
	o.granted = false // for this one
	seal, number, err := o.c.sec.channel.SealLarge.Begin(m.chunk.Bytes(), s.Bytes())
	if err != nil {
		o.free(m)
		return err
	}
	o.sealing = sealing{m: m, seal: seal, number: number}
	o.schedule()
	return nil
}

// sealed is memory for s as it is when it is sealed.
func (o *offers) sealed(s *Outgoing) (m offered, err error) {
	if m.chunk, err = o.memory.Get(secure.LargeLen(s.Len())); err != nil {
		return m, err
	}
	m.send = s
	o.held += o.size(m)
	return m, nil
}

// schedule has Run called in another turn.
func (o *offers) schedule() {
	if !o.queued {
		o.queued = true
		_ = o.c.l.el.Schedule(o) // refused after the loop's end only
	}
}

// Run seals a segment.
func (o *offers) Run(int) (more bool) {
	o.queued = false
	s := &o.sealing
	if s.m.send == nil || s.done || o.c.Over() {
		return false
	}
	if s.seal.Next() {
		o.schedule()
		return false
	}
	s.done = true
	o.c.Pump()
	return false
}

// LoopName names it in the loop's reports of stalls.
func (o *offers) LoopName() string { return "sealing a large message" }

// seals reports whether a message is being sealed, or its offer waits for room. o may be nil.
func (o *offers) seals() bool { return o != nil && o.sealing.m.send != nil }

// goes posts the offer of what was sealed. False: nothing may be posted behind it yet.
func (o *offers) goes() bool {
	if !o.seals() {
		return true
	}
	c, s := o.c, &o.sealing
	if !s.done || c.Flight.Len() >= c.Depth {
		return false
	}
	var b [wire.HeaderLen + wire.SecuredOfferLen]byte
	c.Session.Header(wire.TypeOffer, 0).Put(b[:])
	mr := s.m.region()
	wire.Offer{Length: uint32(s.m.send.Len()), Key: mr.RKey, Addr: mr.Addr, Number: s.number}.PutSecured(b[wire.HeaderLen:])
	switch err := c.Device.post(c, nil, b[:], false); {
	case errors.Is(err, unix.ENOMEM):
		c.retry()
		return false
	case err != nil: // the connection was broken off
		return false
	}
	c.Flight.quiet = 0
	o.unread.Push(s.m)
	*s = sealing{}
	c.l.Shares.again(c)
	c.Session.Sent(wire.TypeOffer, 0)
	c.observe()
	return true
}

// abandon answers for what is being sealed. The peer knows nothing of its memory.
func (o *offers) abandon() {
	if !o.seals() {
		return
	}
	m := o.sealing.m
	o.sealing = sealing{}
	s := m.send
	o.free(m)
	o.c.up.SendFailed(s, Flushed())
}

// largest is the largest message whose region has at most n bytes.
func (t *Terms) largest(n int) int {
	fit := memory.Fitting(n)
	if t.Features != 0 {
		fit -= secure.LargeLen(fit) - fit
	}
	return fit
}

// regionSize is the size of the region for a message of n bytes.
func (t *Terms) regionSize(n int) int {
	if t.Features != 0 {
		n = secure.LargeLen(n)
	}
	return memory.RegionSize(n)
}

// begin begins to open a message that was read.
func (b *arrivals) begin(a *pending) (err error) {
	chunk := a.m.Chunk.Bytes()
	if a.open, err = b.c.sec.channel.OpenLarge.Begin(chunk, len(a.m.Data), a.number); err == nil {
		b.schedule()
	}
	return err
}

func (b *arrivals) schedule() {
	if !b.queued {
		b.queued = true
		_ = b.c.l.el.Schedule(b) // refused after the loop's end only
	}
}

// Run opens a segment of the oldest message that is to be opened.
func (b *arrivals) Run(int) (more bool) {
	b.queued = false
	if b.c.Over() {
		return false
	}
	for i := range b.Waiting.Len() {
		a := b.Waiting.At(i)
		if a.open == nil {
			continue
		}
		b.schedule() // for the rest, or the next
		more, err := a.open.Next()
		if more || err == nil {
			if !more {
				a.open = nil
				b.deliver()
				b.c.Device.pump(b.c)
				b.c.Pump()
			}
			return false
		}
		b.c.up.BreakOff(err)
		return false
	}
	return false
}

// LoopName names it in the loop's reports of stalls.
func (b *arrivals) LoopName() string { return "opening a large message" }
