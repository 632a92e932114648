package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// newHome creates a home on the device of its first identifier.
func newHome(it *ident) (*home, error) {
	area, err := it.l.NewArea(it.id.Device())
	if err != nil {
		return nil, err
	}
	return &home{el: it.l.el, area: area, allowed: it.cfg.allowed(), idents: 1}, nil
}

// connects reports whether the identifier is connected, or may connect now.
func (it *ident) connects() bool {
	switch {
	case it.conn != nil:
		return !it.conn.Over()
	case it.leavesQueuePair() || it.id.Device() == nil:
		return false
	}
	return it.allows(states.OpConnect) || it.allows(states.OpAccept)
}

// allows reports whether the state machine allows a command now.
func (it *ident) allows(op states.Op) bool {
	_, v := states.Step(it.id.Flavor(), it.id.State(), states.Requested(op))
	return v == states.Allow
}

// leavesQueuePair reports whether the owner creates the queue pair.
func (it *ident) leavesQueuePair() bool {
	return it.id.Datagram() || it.cfg.Manual && it.id.Flavor()&states.IWARP == 0
}

// moveIn makes the home, or joins that of its Domain, once. An error: it does not fit there.
func (it *ident) moveIn() (_ *home, err error) {
	switch d := it.cfg.Domain; {
	case it.home != nil:
		return it.home, it.home.fits(it)
	case d != nil:
		it.home, err = d.join(it)
	default:
		it.home, err = newHome(it)
	}
	return it.home, err
}

// meet joins the other connections of the Domain, if there is one.
func (it *ident) meet() error {
	if it.cfg.Domain == nil || !it.connects() {
		return nil
	}
	_, err := it.moveIn()
	return err
}

// moveOut leaves the home. Memory registered there stays until the last queue pair is gone.
func (it *ident) moveOut() {
	h := it.home
	if h == nil {
		return
	}
	it.home = nil
	if h.idents--; h.idents == 0 {
		h.left = true
		if h.domain != nil {
			h.domain.vacate(h)
		}
	}
	h.area.Leave()
}

// join returns the home that d's connections share, and adds the identifier to it.
func (d *Domain) join(it *ident) (*home, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.home
	if h == nil {
		h, err := newHome(it)
		if err == nil {
			d.home, h.domain = h, d
		}
		return h, err
	}
	if h.el != it.l.el || !h.area.On(it.id.Device()) {
		return nil, fmt.Errorf("domain: %w (%w)", ErrDomainElsewhere, unix.EXDEV)
	}
	if err := h.fits(it); err != nil {
		return nil, err
	}
	h.idents++
	h.area.Join()
	return h, nil
}

// fits returns an error if the other connections of h's Domain allow other operations than it. The
// operations that a secured connection allows may have changed since it joined, when its peer was
// identified.
func (h *home) fits(it *ident) error {
	if h.domain != nil && h.allowed != it.cfg.allowed() {
		return fmt.Errorf("domain: its connections allow other one-sided operations than this one (Security.AllowOneSided, PeerLimits): %w",
			unix.EINVAL)
	}
	return nil
}
