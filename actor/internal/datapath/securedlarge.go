package datapath

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// A large message of a secured connection is sealed before it is offered, and opened when all of it
// was read: a segment at a time (segments.go). What follows it waits: on the sending side because
// records leave in order, on the receiving side as behind every offer.

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

// schedule has step called.
func (o *offers) schedule() {
	if !o.queued {
		o.queued = true
		o.c.l.segments.add(o)
	}
}

// ahead is job's.
func (o *offers) ahead() int {
	if s := &o.sealing; s.m.send != nil && !s.done && !o.c.Over() {
		return s.seal.Ahead()
	}
	return 0
}

// step seals a segment.
func (o *offers) step() {
	o.queued = false
	s := &o.sealing
	if s.m.send == nil || s.done || o.c.Over() {
		return
	}
	if s.seal.Next() {
		o.schedule()
		return
	}
	s.done = true
	o.c.Pump()
}

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
		b.c.l.segments.add(b)
	}
}

// toOpen is the oldest message that is to be opened, or nil.
func (b *arrivals) toOpen() *pending {
	for i := range b.Waiting.Len() {
		if a := b.Waiting.At(i); a.open != nil {
			return a
		}
	}
	return nil
}

// ahead is job's.
func (b *arrivals) ahead() int {
	if a := b.toOpen(); a != nil && !b.c.Over() {
		return a.open.Ahead()
	}
	return 0
}

// step opens a segment of the oldest message that is to be opened.
func (b *arrivals) step() {
	b.queued = false
	a := b.toOpen()
	if a == nil || b.c.Over() {
		return
	}
	b.schedule() // for the rest, or the next
	switch more, err := a.open.Next(); {
	case more:
	case err != nil:
		b.c.up.BreakOff(err)
	default:
		a.open = nil
		b.deliver()
		b.c.Device.pump(b.c)
		b.c.Pump()
	}
}
