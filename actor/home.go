package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// home is where an identifier's memory is: a protection domain, from when the first memory is
// allocated or the queue pair is made. So there can be memory before there is a connection. The
// identifiers of a Domain share one. Loop goroutine, but for l, area and allowed, which stay.
type home struct {
	l       *loop
	area    *datapath.Area
	allowed Access  // to peers, of each of its connections
	domain  *Domain // nil: it is of one identifier
	idents  int     // in it
	bytes   int     // of AllocMemory
	left    bool    // they have gone, or Dial has gone on to another address
}

// newHome makes one on the device of its first identifier.
func newHome(it *ident) (*home, error) {
	area, err := it.l.NewArea(it.id.Device())
	if err != nil {
		return nil, err
	}
	return &home{l: it.l, area: area, allowed: it.cfg.allowed(), idents: 1}, nil
}

// connects reports whether the identifier is connected, or may connect now.
func (it *ident) connects() bool {
	switch {
	case it.conn != nil:
		return !it.conn.Over()
	case it.leavesQueuePair() || it.id.Device() == nil:
		return false
	}
	return it.legal(&cmid.Connect{}) || it.legal(&cmid.Accept{})
}

// leavesQueuePair reports whether it is the owner who makes the queue pair.
func (it *ident) leavesQueuePair() bool {
	return it.id.Datagram() || it.cfg.Manual && it.id.Flavor()&states.IWARP == 0
}

// memory is how many bytes of AllocMemory there are.
func (it *ident) memory() int {
	if it.home == nil {
		return 0
	}
	return it.home.bytes
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

// meet joins the others of the Domain, if there is one.
func (it *ident) meet() error {
	if it.cfg.Domain == nil || !it.connects() {
		return nil
	}
	_, err := it.moveIn()
	return err
}

// moveOut leaves the home. What is registered there stays until the last queue pair is gone.
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
