package datapath

import (
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

func newOffers(c *Conn) *offers {
	o := &offers{c: c}
	if _, ok := c.pd.(verbs.Registrar); !ok {
		o.memory = memory.NewRegionCache(c.Device.Verbs, c.pd, verbs.RemoteRead, c.l.HeldBudget, true)
	}
	return o
}

// ready reports whether s may be offered now. If it is memory that is missing, there will be a
// pump when there is some.
func (o *offers) ready(s *Outgoing) bool {
	if o.unread.Len() == wire.MaxOffers || o.wait {
		return false
	}
	if o.want = memory.RegionSize(s.Len()); o.granted || o.c.l.HeldBudget.Admits((*offersClaim)(o)) {
		return true
	}
	o.wait = true
	return false
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

// post offers s, which is ready.
func (o *offers) post(s *Outgoing) error {
	c := o.c
	m, err := o.source(s)
	if err != nil {
		return err
	}
	var b [wire.HeaderLen + wire.OfferLen]byte
	c.Session.Header(wire.TypeOffer, 0).Put(b[:])
	wire.Offer{Length: uint32(s.Len()), Key: m.region().RKey, Addr: m.region().Addr}.Put(b[wire.HeaderLen:])
	if err := c.Device.post(c, nil, b[:], false); err != nil {
		o.free(m)
		return err
	}
	o.unread.Push(m)
	o.granted = false // for this one
	return nil
}

// source makes s something that the peer can read.
func (o *offers) source(s *Outgoing) (m offered, err error) {
	m.send = s
	if o.memory == nil {
		if m.mr, err = o.c.pd.(verbs.Registrar).Register(s.Bytes(), verbs.RemoteRead); err != nil {
			return m, err
		}
		o.c.l.HeldBudget.TakeLarge(o.size(m))
	} else {
		if m.chunk, err = o.memory.Get(s.Len()); err != nil {
			return m, err
		}
		copy(m.chunk.Bytes(), s.Bytes())
	}
	o.held += o.size(m)
	return m, nil
}

func (m *offered) region() *verbs.MR {
	if m.mr != nil {
		return m.mr
	}
	return m.chunk.SGE.MR
}

// size is what m takes of the budget.
func (o *offers) size(m offered) int { return memory.RegionSize(len(m.region().Bytes)) }

// free takes the memory back.
func (o *offers) free(m offered) {
	n := o.size(m)
	o.held -= n
	if m.chunk != nil {
		m.chunk.Free()
		return
	}
	_ = o.c.Device.Verbs.Free(m.mr) // nothing posted names it
	o.c.l.HeldBudget.GiveLarge(n)
}

// pulled ends the offers that the peer has read.
func (o *offers) pulled() {
	c := o.c
	for o.unread.Len() > c.Session.Unread() {
		m := o.unread.Pop()
		o.free(m)
		s := m.send
		if s.notify {
			c.Up.Sent(s)
		}
		if m.chunk != nil {
			s.Recycle()
		} else {
			o.spend(s)
		}
	}
}

// spendFor is how long the memory of a message that was read waits for something to be posted
// behind it.
const spendFor = 100 * time.Millisecond

// spend has s wait until its memory may be used again.
func (o *offers) spend(s *Outgoing) {
	o.spent = append(o.spent, spent{s, o.c.Flight.next()})
	if o.timer == nil {
		o.timer = o.c.l.el.NewTimer(o.lapse)
	}
	o.timer.Reset(spendFor)
}

// settle uses memory again that nothing can be sent from any more.
func (o *offers) settle() {
	n := 0
	for n < len(o.spent) && int32(o.c.Flight.head-o.spent[n].after) > 0 {
		o.spent[n].send.Recycle()
		n++
	}
	o.spent = slices.Delete(o.spent, 0, n)
}

// lapse leaves to the garbage collector what nothing was posted behind.
func (o *offers) lapse() { o.spent = nil }

// stop answers for what the peer has not read, as far as we know. The memory stays until the queue
// pair is gone.
func (o *offers) stop() {
	for i := range o.unread.Len() {
		m := o.unread.At(i)
		if m.mr != nil {
			m.send.class = -1 // a peer may still be reading it
		}
		o.c.Up.SendFailed(m.send, Flushed())
		m.send = nil
	}
	if o.wait {
		o.wait = false
		o.c.l.HeldBudget.Leave((*offersClaim)(o))
	}
}

// close takes back what stop has left: the queue pair is gone.
func (o *offers) close() {
	for o.unread.Len() > 0 {
		o.free(o.unread.Pop())
	}
	if o.memory != nil {
		o.memory.Close()
	}
	if o.timer != nil {
		o.timer.Stop()
	}
	o.spent = nil
}
