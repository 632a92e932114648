package cmidtest

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// How long TCP repeats what nobody acknowledges before it gives the connection up: the embedded
// device sets TCP_USER_TIMEOUT, Linux tries 15 times.
const (
	embeddedGiveUp = 30 * time.Second
	kernelGiveUp   = 924600 * time.Millisecond
)

// hostPair is two hosts, in either order.
type hostPair [2]*Host

// Cut cuts the link between two hosts: what either sends to the other is lost, and nobody is told.
// What its transport repeats arrives after Heal, in order: everything on iWARP, where it is a
// stream, and what queue pairs say to each other on InfiniBand (its connection managers repeat
// their messages themselves). Who gets no acknowledgement gives up: an InfiniBand queue pair after
// 17 s (verbs.StatusRetryExc), a stream after 30 s where Config.Embedded is set, after 15 minutes
// elsewhere (Disconnected, ETIMEDOUT). Who has nothing under way notices nothing. What was on its
// way already, because of Delay or LatencyFor, arrives. A link that is cut stays so; a host's link
// to itself cannot be cut, which panics.
func (f *Fabric) Cut(a, b *Host) *Fault {
	if a == b {
		panic("cmidtest: a host has no link to itself")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.link(a, b)
	if c == nil {
		c = &cut{fault: f.ask(1, "Cut between %s and %s", a, b)}
		f.faults.cuts[hostPair{a, b}] = c
	}
	return c.fault
}

// Heal ends Cut. It reports whether the link was cut.
func (f *Fabric) Heal(a, b *Host) (was bool) {
	for {
		f.mu.Lock()
		c := f.link(a, b)
		if c == nil {
			f.mu.Unlock()
			return was
		}
		held := c.held
		// what is sent meanwhile must not overtake what has waited
		if c.held = nil; len(held) == 0 {
			delete(f.faults.cuts, hostPair{a, b})
			delete(f.faults.cuts, hostPair{b, a})
		}
		f.mu.Unlock()
		was = true
		for _, p := range held {
			f.acknowledged(p.from)
			p.to.in.put(p)
		}
	}
}

// cut is a link that is cut.
type cut struct {
	fault *Fault
	held  []packet // to be repeated
}

// severed reports whether a link is cut, which keeps one host from finding the other. f.mu is held.
func (f *Fabric) severed(a, b *Host) bool {
	c := f.link(a, b)
	return c != nil && c.fault.hit()
}

// link is the cut between two hosts; nil: there is none. f.mu is held.
func (f *Fabric) link(a, b *Host) *cut {
	if len(f.faults.cuts) == 0 {
		return nil
	}
	if c := f.faults.cuts[hostPair{a, b}]; c != nil {
		return c
	}
	return f.faults.cuts[hostPair{b, a}]
}

// cutFor is the cut that p meets; nil: none. f.mu is held.
func (f *Fabric) cutFor(p *packet) *cut {
	if len(f.faults.cuts) == 0 {
		return nil
	}
	var from *Host
	if p.from.in != nil {
		from = p.from.in.host
	} else if d := f.addrs[p.src.WithZone("")]; d != nil { // a kernel that answers for nobody
		from = d.host
	}
	return f.link(from, p.to.in.host)
}

// repeated reports whether a transport repeats messages of that kind until they are acknowledged.
func (f *Fabric) repeated(kind Message) bool {
	switch kind {
	case MsgSend, MsgAck, MsgWrite, MsgRead, MsgAtomic, MsgReadResponse:
		return true
	}
	return f.iwarp
}

// unsend drops what waits for a link to be healed: its sender repeats it no longer.
func (f *Fabric) unsend(from endpoint) {
	f.mu.Lock()
	var dropped []packet
	for _, c := range f.faults.cuts {
		c.held = slices.DeleteFunc(c.held, func(p packet) bool {
			if p.from == from {
				dropped = append(dropped, p)
			}
			return p.from == from
		})
	}
	f.mu.Unlock()
	for i := range dropped {
		f.read(dropped[i].listener)
		dropped[i].release()
	}
}

// unacknowledged starts the patience of a stream whose bytes wait for a link.
func (f *Fabric) unacknowledged(who endpoint) {
	if f.iwarp && who.in != nil {
		who.in.later(func() { who.in.stalled(who, true) })
	}
}

// acknowledged ends it.
func (f *Fabric) acknowledged(who endpoint) {
	if f.iwarp && who.in != nil {
		who.in.later(func() { who.in.stalled(who, false) })
	}
}

// stalled notes that a stream has bytes that are not acknowledged, or no longer.
func (in *instance) stalled(who endpoint, yes bool) {
	id := in.ids[who.h]
	switch {
	case id == nil:
	case !yes:
		id.unstall()
	case !id.stalling:
		id.stalling = true
		if id.stall == nil {
			id.stall = in.loop.NewTimer(id.giveUp)
		}
		limit := kernelGiveUp
		if in.f.embedded {
			limit = embeddedGiveUp
		}
		id.stall.Reset(limit)
	}
}

func (id *ident) unstall() {
	if id.stalling = false; id.stall != nil {
		id.stall.Stop()
	}
}

// giveUp is TCP's end of a connection that does not get through.
func (id *ident) giveUp() {
	id.in.f.unsend(id.self())
	if id.state == states.Connected {
		id.endStream(-int32(unix.ETIMEDOUT), fmt.Errorf("nothing was acknowledged for too long: %w", unix.ETIMEDOUT))
	}
}
