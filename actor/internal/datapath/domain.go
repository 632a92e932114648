package datapath

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/verbs"
)

func newDomain(d *Device, pd verbs.PD, own bool) *domain {
	dm := &domain{d: d, pd: pd, recv: make(map[int]*recvPool), own: own}
	dm.sinks = memory.NewRegionCache(d.Verbs, pd, verbs.LocalWrite, d.l.RecvBudget, own)
	d.domains++
	d.Domains[dm] = d.domains
	return dm
}

// SendArena is where messages of n bytes are sent from.
func (dm *domain) SendArena(n int) *memory.Arena {
	class := sizeClass(n, minArenaShift)
	if dm.Send[class] == nil {
		dm.Send[class] = memory.NewArena(dm.d.Verbs, dm.pd, 0, 1<<(class+minArenaShift), dm.own, dm.d.l.SendBudget)
	}
	return dm.Send[class]
}

// heldByOwners is how many receive buffers are handed out, without those posted to the device.
func (dm *domain) heldByOwners() (n int) {
	for _, p := range dm.recv {
		n += p.Arena.Out() - (len(p.posted) - len(p.free)) - p.aside + p.copies.Out()
	}
	return n + dm.sinks.Held()
}

// leave notes that a connection which has the domain for its own has gone.
func (dm *domain) leave() {
	if dm.own {
		dm.left = true
		dm.vanish()
	}
}

// vanish frees a connection's own domain, once nobody needs it: messages that owners have are in
// its memory.
func (dm *domain) vanish() {
	if dm.left && dm.heldByOwners() == 0 {
		dm.close()
		delete(dm.d.Domains, dm)
		dm.d.closed("dealloc_pd", dm.pd.Close())
	}
}

// close frees everything but the memory of messages that owners have.
func (dm *domain) close() {
	for _, n := range slices.Sorted(maps.Keys(dm.recv)) {
		dm.recv[n].close()
	}
	for _, a := range dm.Send {
		if a != nil {
			a.Close()
		}
	}
	dm.sinks.Close()
}

// enter chooses the protection domain of c's queue pair, and the domain whose memory c receives
// into and sends from.
//
// Memory that a connection lets its peer reach is in a domain without any other queue pair, so that
// another peer cannot reach it, whatever it knows. On a device whose queue pairs may all use
// Device.PD's memory (the embedded one) every connection gets a domain, which costs a few bytes. On
// others, as InfiniBand has it, everything that a queue pair touches must be in its own domain, so
// the connection cannot use the loop's shared memory. There a connection gets a domain, with memory
// of its own, only if it may have to offer or read messages, or if its owner has one (Terms.Area).
func (c *Conn) enter() error {
	d := c.Device
	if a := c.terms.Area; a != nil {
		a.enter()
		c.area, c.pd, c.dom = a, a.pd, a.dom
		return nil
	}
	c.pd, c.dom = d.Shared.pd, d.Shared
	if !d.attr.SharesMemory && !c.large() {
		return nil
	}
	pd, err := d.Verbs.AllocPD()
	if err != nil {
		return fmt.Errorf("alloc_pd on %s: %w", d.Verbs.Name(), err)
	}
	c.pd = pd
	if !d.attr.SharesMemory {
		c.dom = newDomain(d, pd, true)
	}
	return nil
}

// Scoped reports whether c's protection domain is its own.
func (c *Conn) Scoped() bool { return c.pd != c.Device.Shared.pd }

// leave gives the domain back, once the queue pair is gone.
func (c *Conn) leave() {
	if c.pool != nil {
		c.leavePools()
	}
	switch {
	case c.area != nil:
		c.area.depart()
	case c.dom.own:
		c.dom.leave()
	case c.Scoped():
		c.Device.closed("dealloc_pd", c.pd.Close())
	}
}
