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
	return &home{el: e.l.el, area: area, allowed: e.cfg.allowedRights(), idents: 1}, nil
}

// moveIn makes the home, or joins that of its Domain, once. An error: it does not fit there.
func (tn *tenancy) moveIn() (_ *home, err error) {
	switch d := tn.cfg.Domain; {
	case tn.home != nil:
		return tn.home, tn.home.checkAllowed(tn.cfg)
	case d != nil:
		tn.home, err = d.joinHome(&tn.endpoint)
	default:
		tn.home, err = newHome(&tn.endpoint)
	}
	return tn.home, err
}

// joinDomain joins the other connections of the Domain, if there is one.
func (tn *tenancy) joinDomain() error {
	if tn.cfg.Domain == nil || !tn.canConnect() {
		return nil
	}
	_, err := tn.moveIn()
	return err
}

// moveOut leaves the home. Memory registered there stays until the last queue pair is gone.
func (tn *tenancy) moveOut() {
	h := tn.home
	if h == nil {
		return
	}
	tn.home, tn.notifiable = nil, false
	if h.idents--; h.idents == 0 {
		h.left = true
		if h.domain != nil {
			h.domain.removeHome(h)
		}
	}
	h.area.Leave()
}

// joinHome returns the home that d's connections share, and adds the identifier to it.
func (d *Domain) joinHome(e *endpoint) (*home, error) {
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
	if err := h.checkAllowed(e.cfg); err != nil {
		return nil, err
	}
	h.idents++
	h.area.Join()
	return h, nil
}

// checkAllowed returns an error if the other connections of h's Domain allow other operations than
// cfg does. The operations that a secured connection allows may have changed since it joined, when
// its peer was identified.
func (h *home) checkAllowed(cfg *IDConfig) error {
	if h.domain != nil && h.allowed != cfg.allowedRights() {
		return fmt.Errorf("domain: its connections allow other one-sided operations than this one (Security.AllowOneSided, PeerLimits): %w",
			unix.EINVAL)
	}
	return nil
}

// canConnect reports whether the identifier is connected, or may connect now.
func (tn *tenancy) canConnect() bool {
	switch {
	case tn.conn != nil:
		return !tn.conn.Over()
	case tn.leavesQueuePair() || tn.id.Device() == nil:
		return false
	}
	return tn.isLegal(states.OpConnect) || tn.isLegal(states.OpAccept)
}

// usedBytes returns how many bytes of AllocMemory there are.
func (tn *tenancy) usedBytes() int {
	if tn.home == nil {
		return 0
	}
	return tn.home.bytes
}
