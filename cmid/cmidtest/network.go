package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"
)

// sendPacket passes p to the network. It returns false when p is lost.
func (f *Fabric) sendPacket(p packet) bool {
	if f.interceptPacket(&p) {
		f.dropPacket(&p)
		return false
	}
	switch f.fateOf(&p) {
	case fateLost:
		f.dropPacket(&p)
		return false
	case fateWaits:
		f.setStalled(p.from, true)
	case fateArrives:
		p.to.in.queuePacket(p)
	}
	return true
}

// connReset is the status of a stream that was reset.
const connReset = -int32(unix.ECONNRESET)

// answerPacket sends an answer to p with the sender from, which may be the zero endpoint.
func (f *Fabric) answerPacket(p *packet, from endpoint, kind Message, status int32) {
	f.sendPacket(packet{kind: kind, from: from, to: p.from, src: p.dst, dst: p.src, cm: &message{status: status}})
}

// dropPacket frees an unhandled packet.
func (f *Fabric) dropPacket(p *packet) {
	f.countRead(p.listener)
	p.release()
}

// dropAll frees unhandled packets.
func (f *Fabric) dropAll(ps []packet) {
	for i := range ps {
		f.dropPacket(&ps[i])
	}
}

// takeOut moves the elements that belong elsewhere from list to the end of to.
func takeOut[T any](list, to []T, elsewhere func(*T) bool) (left, taken []T) {
	left = slices.DeleteFunc(list, func(v T) bool {
		if !elsewhere(&v) {
			return false
		}
		to = append(to, v)
		return true
	})
	return left, to
}

// countRead records that a listener has one unread request fewer.
func (f *Fabric) countRead(b *binding) {
	if b == nil {
		return
	}
	f.mu.Lock()
	b.unread--
	f.mu.Unlock()
}

// Heal ends the effect of Cut. It reports whether the link was cut.
func (f *Fabric) Heal(a, b *Host) (was bool) {
	for {
		f.mu.Lock()
		c := f.faults.cuts[hostPair{a, b}]
		if c == nil {
			f.mu.Unlock()
			return was
		}
		waiting := c.waiting
		// The link stays cut while these are sent, so that nothing overtakes them.
		if c.waiting = nil; len(waiting) == 0 {
			delete(f.faults.cuts, hostPair{a, b})
			delete(f.faults.cuts, hostPair{b, a})
		}
		f.mu.Unlock()
		was = true
		for _, p := range waiting {
			f.setStalled(p.from, false)
			p.to.in.queuePacket(p)
		}
	}
}

// dropUnsent drops the messages of a sender that wait for a link to be healed, because the sender
// no longer repeats them.
func (f *Fabric) dropUnsent(from endpoint) {
	f.mu.Lock()
	var dropped []packet
	for _, c := range f.faults.cuts {
		c.waiting, dropped = takeOut(c.waiting, dropped, func(p *packet) bool { return p.from == from })
	}
	f.mu.Unlock()
	f.dropAll(dropped)
}

// setStalled starts or stops TCP's timer for a stream whose bytes wait for a link.
func (f *Fabric) setStalled(who endpoint, yes bool) {
	if f.iwarp && who.in != nil {
		who.in.runLater(func() {
			if id := who.in.ids[who.h]; id != nil {
				id.stream.setStalled(yes)
			}
		})
	}
}

// queuePacket queues p and schedules the instance on its loop. It never runs the instance itself.
// Any goroutine may call it.
func (in *instance) queuePacket(p packet) {
	in.box.mu.Lock()
	if now := in.box.moved[p.to.h]; now != nil {
		in.box.mu.Unlock()
		now.queuePacket(p)
		return
	}
	if in.box.closed {
		in.box.mu.Unlock()
		in.f.dropPacket(&p)
		return
	}
	in.box.in = append(in.box.in, p)
	in.scheduleLocked()
}

// queuePacket passes p on, or keeps it while the identifier is on its way. Any goroutine may call
// it.
func (d *detached) queuePacket(p packet) {
	d.mu.Lock()
	to := d.to
	switch {
	case to != nil:
	case d.gone:
		d.from.f.dropPacket(&p)
	default:
		d.came = append(d.came, p)
	}
	d.mu.Unlock()
	if to != nil {
		to.queuePacket(p)
	}
}

// scheduleTurn schedules the instance although nothing has arrived.
func (in *instance) scheduleTurn() {
	in.box.mu.Lock()
	in.scheduleLocked()
}

// scheduleLocked schedules the instance on its loop. Its caller holds box.mu, and scheduleLocked
// releases it.
func (in *instance) scheduleLocked() {
	first := !in.box.scheduled && !in.box.closed
	in.box.scheduled = in.box.scheduled || first
	if i := in.box.ice; i != nil {
		select {
		case i.came <- struct{}{}:
		default:
		}
	}
	in.box.mu.Unlock()
	if first {
		_ = in.loop.Schedule(in) // fails only after the loop's end
	}
}

// runLater runs fn on the loop, after the messages that have arrived.
func (in *instance) runLater(fn func()) { in.queuePacket(packet{kind: msgLocal, fn: fn}) }
