package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// tenancy is an identifier's place in a home, where its memory for one-sided operations is.
type tenancy struct {
	*outbox
	home *home // nil: none was needed yet
}

// newHome creates a home on the device of its first identifier.
func newHome(e *endpoint) (*home, error) {
	area, err := e.l.NewArea(e.id.Device())
	if err != nil {
		return nil, err
	}
	return &home{el: e.l.el, area: area, allowed: e.cfg.allowed(), idents: 1}, nil
}

// moveIn makes the home, or joins that of its Domain, once. An error: it does not fit there.
func (t *tenancy) moveIn() (_ *home, err error) {
	switch d := t.cfg.Domain; {
	case t.home != nil:
		return t.home, t.home.fits(&t.cfg)
	case d != nil:
		t.home, err = d.join(&t.endpoint)
	default:
		t.home, err = newHome(&t.endpoint)
	}
	return t.home, err
}

// meet joins the other connections of the Domain, if there is one.
func (t *tenancy) meet() error {
	if t.cfg.Domain == nil || !t.connects() {
		return nil
	}
	_, err := t.moveIn()
	return err
}

// moveOut leaves the home. Memory registered there stays until the last queue pair is gone.
func (t *tenancy) moveOut() {
	h := t.home
	if h == nil {
		return
	}
	t.home, t.notifiable = nil, false
	if h.idents--; h.idents == 0 {
		h.left = true
		if h.domain != nil {
			h.domain.vacate(h)
		}
	}
	h.area.Leave()
}

// join returns the home that d's connections share, and adds the identifier to it.
func (d *Domain) join(e *endpoint) (*home, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.home
	if h == nil {
		h, err := newHome(e)
		if err == nil {
			d.home, h.domain = h, d
		}
		return h, err
	}
	if h.el != e.l.el || !h.area.On(e.id.Device()) {
		return nil, fmt.Errorf("domain: %w (%w)", ErrDomainElsewhere, unix.EXDEV)
	}
	if err := h.fits(&e.cfg); err != nil {
		return nil, err
	}
	h.idents++
	h.area.Join()
	return h, nil
}

// fits returns an error if the other connections of h's Domain allow other operations than cfg
// does. The operations that a secured connection allows may have changed since it joined, when its
// peer was identified.
func (h *home) fits(cfg *IDConfig) error {
	if h.domain != nil && h.allowed != cfg.allowed() {
		return fmt.Errorf("domain: its connections allow other one-sided operations than this one (Security.AllowOneSided, PeerLimits): %w",
			unix.EINVAL)
	}
	return nil
}

// connects reports whether the identifier is connected, or may connect now.
func (t *tenancy) connects() bool {
	switch {
	case t.conn != nil:
		return !t.conn.Over()
	case t.leavesQueuePair() || t.id.Device() == nil:
		return false
	}
	return t.allows(states.OpConnect) || t.allows(states.OpAccept)
}

// used returns how many bytes of AllocMemory there are.
func (t *tenancy) used() int {
	if t.home == nil {
		return 0
	}
	return t.home.bytes
}
