package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"
)

// send gives p to the network; false when it is lost there.
func (f *Fabric) send(p packet) bool {
	if p.to.in == nil {
		p.release()
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

// connReset is the status of a stream that its end did not close.
const connReset = -int32(unix.ECONNRESET)

// answer sends p's sender something that no identifier has made, from from or nobody.
func (f *Fabric) answer(p *packet, from endpoint, kind Message, status int32) {
	f.send(packet{kind: kind, from: from, to: p.from, src: p.dst, dst: p.src, cm: &message{status: status}})
}

// drop ends a packet that nobody takes.
func (f *Fabric) drop(p *packet) {
	f.read(p.listener)
	p.release()
}

func (f *Fabric) dropAll(ps []packet) {
	for i := range ps {
		f.drop(&ps[i])
	}
}

// takeOut moves what belongs elsewhere from one list to the end of another.
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

// read says that a request is not unread any more.
func (f *Fabric) read(b *binding) {
	if b == nil {
		return
	}
	f.mu.Lock()
	b.unread--
	f.mu.Unlock()
}

// Heal ends Cut. It reports whether the link was cut.
func (f *Fabric) Heal(a, b *Host) (was bool) {
	for {
		f.mu.Lock()
		c := f.faults.cuts[hostPair{a, b}]
		if c == nil {
			f.mu.Unlock()
			return was
		}
		waiting := c.waiting
		// what is sent meanwhile must not overtake what has waited
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

// unsend drops what waits for a link to be healed: its sender repeats it no longer.
func (f *Fabric) unsend(from endpoint) {
	f.mu.Lock()
	var dropped []packet
	for _, c := range f.faults.cuts {
		c.waiting, dropped = takeOut(c.waiting, dropped, func(p *packet) bool { return p.from == from })
	}
	f.mu.Unlock()
	f.dropAll(dropped)
}

// stalled starts the patience of a stream whose bytes wait for a link, or ends it.
func (f *Fabric) stalled(who endpoint, yes bool) {
	if f.iwarp && who.in != nil {
		who.in.later(func() { who.in.stalled(who, yes) })
	}
}

// put queues p and has the instance run, on its loop, never inside the caller.
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
	in.schedule()
}

// put takes what comes for the identifier where it was. Any goroutine.
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

// kick has the instance run although nothing has arrived.
func (in *instance) kick() {
	in.box.mu.Lock()
	in.schedule()
}

// schedule is called with box.mu held and releases it.
func (in *instance) schedule() {
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
		_ = in.loop.Schedule(in) // refused after the loop's end only: nobody is there any more
	}
}

// later runs fn on the loop, after what has arrived already.
func (in *instance) later(fn func()) { in.put(packet{kind: msgLocal, fn: fn}) }
