package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"
)

// send gives p to the network. It returns false when p is lost.
func (f *Fabric) send(p packet) bool {
	if f.intercepted(&p) {
		f.drop(&p)
		return false
	}
	switch f.fateOf(&p) {
	case fateLost:
		f.drop(&p)
		return false
	case fateWaits:
		f.stalled(p.from, true)
	case fateArrives:
		p.to.in.put(p)
	}
	return true
}

// connReset is the status of a stream that was reset.
const connReset = -int32(unix.ECONNRESET)

// answer sends an answer to p with the sender from, which may be the zero endpoint.
func (f *Fabric) answer(p *packet, from endpoint, kind Message, status int32) {
	f.send(packet{kind: kind, from: from, to: p.from, src: p.dst, dst: p.src, cm: &message{status: status}})
}

// drop frees an unhandled packet.
func (f *Fabric) drop(p *packet) {
	f.read(p.listener)
	p.release()
}

// dropAll frees unhandled packets.
func (f *Fabric) dropAll(ps []packet) {
	for i := range ps {
		f.drop(&ps[i])
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

// read records that a listener has one unread request fewer.
func (f *Fabric) read(b *binding) {
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
			f.stalled(p.from, false)
			p.to.in.put(p)
		}
	}
}

// unsend drops the messages of a sender that wait for a link to be healed, because the sender no
// longer repeats them.
func (f *Fabric) unsend(from endpoint) {
	f.mu.Lock()
	var dropped []packet
	for _, c := range f.faults.cuts {
		c.waiting, dropped = takeOut(c.waiting, dropped, func(p *packet) bool { return p.from == from })
	}
	f.mu.Unlock()
	f.dropAll(dropped)
}

// stalled starts or stops TCP's timer for a stream whose bytes wait for a link.
func (f *Fabric) stalled(who endpoint, yes bool) {
	if f.iwarp && who.in != nil {
		who.in.later(func() { who.in.stalled(who, yes) })
	}
}

// put queues p and schedules the instance on its loop. It never runs the instance itself. Any
// goroutine may call it.
func (in *instance) put(p packet) {
	in.box.mu.Lock()
	if now := in.box.moved[p.to.h]; now != nil {
		in.box.mu.Unlock()
		now.put(p)
		return
	}
	if in.box.closed {
		in.box.mu.Unlock()
		in.f.drop(&p)
		return
	}
	in.box.in = append(in.box.in, p)
	in.scheduleLocked()
}

// put passes p on, or keeps it while the identifier is on its way. Any goroutine may call it.
func (d *detached) put(p packet) {
	d.mu.Lock()
	to := d.to
	switch {
	case to != nil:
	case d.gone:
		d.from.f.drop(&p)
	default:
		d.came = append(d.came, p)
	}
	d.mu.Unlock()
	if to != nil {
		to.put(p)
	}
}

// kick schedules the instance although nothing has arrived.
func (in *instance) kick() {
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

// later runs fn on the loop, after the messages that have arrived.
func (in *instance) later(fn func()) { in.put(packet{kind: msgLocal, fn: fn}) }
