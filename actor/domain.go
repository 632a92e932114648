package actor

import (
	"errors"
	"sync"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Domain is a protection domain (struct ibv_pd) for several connections of one owner
// (IDConfig.Domain). Memory that was allocated through one of them is memory of all: any of them
// can name it in a Read or Write, grant it to its own peer, revoke it and free it. It outlasts the
// connection that has allocated it. FreeMemory frees it, or the end of the domain's last
// connection, as soon as it is not in use (Memory.Use).
//
// The owner gives up the isolation between these connections' peers. A key is the same for all of
// them: a peer that learns one, from another peer or by a guess, reaches that memory, and large
// messages that are offered to other peers of the domain, until they are read. Peers of
// connections outside of the domain reach nothing of it. A Revoke or FreeMemory takes the memory
// from all peers. A grant does not end with the connection through which it was made.
//
// The value is the only way into its domain: only code that was given it can join. The zero value
// is ready for use, and empty. A Domain must not be copied. After its last connection has ended it
// may be used again, with other memory.
//
// The connections that are in a domain at a time have to be on one loop and one device, and to
// allow the same one-sided operations (Security.AllowOneSided, without PeerLimits.DenyOneSided). A
// connection joins when its first memory is allocated or granted, or with its Connect or Accept.
// That command fails with ErrDomainElsewhere or EINVAL if the connection does not fit. If one
// OnLoop actor owns all of them, all are on its loop; for requested connections IDConfig.Route and
// IDConfig.Place do that.
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
var ErrDomainElsewhere = errors.New("the domain's connections are on another loop or device: let one OnLoop actor own all of them")

// removeHome removes h, which no identifier uses any longer, from the domain.
func (d *Domain) removeHome(h *home) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.home == h {
		d.home = nil
	}
}

// home is the protection domain of an identifier's memory. It is made when the first memory is
// allocated or the queue pair is made, so there can be memory before there is a connection. The
// identifiers of a Domain share one. Only the loop's goroutine may use it, except for el, area and
// allowed, which do not change.
type home struct {
	el      *eventloop.Loop
	area    *datapath.Area
	allowed Access  // to peers, of each of its connections
	domain  *Domain // nil: it belongs to a single identifier
	idents  int     // in it
	bytes   int     // of AllocMemory
	left    bool    // no identifier is in it any longer
}
