package actor

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Domain is a protection domain (struct ibv_pd) for several connections of one owner
// (IDConfig.Domain). Memory that was allocated through one of them is memory of all: any of them
// can name it in a Read or Write, grant it to its own peer, revoke it and free it. It stays when
// the connection that has allocated it ends. It goes with FreeMemory, or when the last connection
// of the domain has ended and nobody uses it any more (Memory.Use).
//
// The owner gives up the isolation between these connections' peers. A key is the same for all of
// them: a peer that learns one, from another peer or by a guess, reaches that memory, and large
// messages that are offered to other peers of the domain, until they are read. Peers of
// connections outside of the domain reach nothing of it. A Revoke or FreeMemory takes the memory
// from all peers. A grant does not end with the connection through which it was made.
//
// The value is the only way into its domain, so nobody else gets in who was not given it. The zero
// value is ready for use, and empty. A Domain must not be copied. After its last connection has
// ended it may be used again, with other memory.
//
// The connections that are in a domain at a time have to be on one loop and one device, and to
// allow the same one-sided operations (Security.AllowOneSided, without PeerLimits.DenyOneSided). A
// connection joins when its first memory is allocated or granted, or with its Connect or Accept.
// That command fails with ErrDomainElsewhere or EINVAL if the connection does not fit. One OnLoop
// actor that owns all of them has them all on its loop; IDConfig.Route and IDConfig.Place do that
// for connections that are requested.
//
// A secured connection joins for its handshake. Its peer reaches nothing until it is authenticated,
// and at the listening side until the owner has sent Accept: the queue pair has no remote access
// before (IBV_QP_ACCESS_FLAGS), and a peer that guesses a key loses its connection with that. The
// kernel's iWARP devices cannot do this (verbs.DeviceAttr.QPAccess). There a peer that is not
// authenticated yet, and may never be, reaches the memory of the domain if it guesses a key.
type Domain struct {
	mu   sync.Mutex
	home *home // nil: no connection is in it
}

// ErrDomainElsewhere: the connections that are in the Domain are on another loop, or on another
// device. errors.Is finds EXDEV beside it.
var ErrDomainElsewhere = errors.New("the domain's connections are on another loop or device: have one OnLoop actor own all of them")

// join makes an identifier's home be the one that d's connections share.
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
	if h.l != it.l || !h.area.On(it.id.Device()) {
		return nil, fmt.Errorf("domain: %w (%w)", ErrDomainElsewhere, unix.EXDEV)
	}
	if err := h.fits(it); err != nil {
		return nil, err
	}
	h.idents++
	h.area.Join()
	return h, nil
}

// fits returns an error if the other connections of h's Domain allow other operations than it. What
// a secured one allows may have changed since it has joined, when it was found who its peer is.
func (h *home) fits(it *ident) error {
	if h.domain != nil && h.allowed != it.cfg.allowed() {
		return fmt.Errorf("domain: its connections allow other one-sided operations than this one (Security.AllowOneSided, PeerLimits): %w",
			unix.EINVAL)
	}
	return nil
}

// vacate notes that nobody is in h any more.
func (d *Domain) vacate(h *home) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.home == h {
		d.home = nil
	}
}
