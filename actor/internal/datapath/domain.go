package datapath

import (
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

// heldByOwners returns how many receive buffers are handed out, without those posted to the device.
func (dm *domain) heldByOwners() (n int) {
	for _, p := range dm.recv {
		n += p.Arena.Out() - (len(p.posted) - len(p.free)) - p.aside + p.copies.Out()
	}
	return n + dm.sinks.Held()
}

// leavePrivate records that the connection which has the domain for its own has gone.
func (dm *domain) leavePrivate() {
	if dm.own {
		dm.left = true
		dm.closeUnused()
	}
}

// closeUnused frees a connection's private domain once it is unused: messages that owners have are
// in its memory.
func (dm *domain) closeUnused() {
	if dm.left && dm.heldByOwners() == 0 {
		dm.close()
		delete(dm.d.Domains, dm)
		dm.d.logCloseError("dealloc_pd", dm.pd.Close())
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
