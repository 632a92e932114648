package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// home is where an identifier's memory is: a protection domain, from when the first memory is
// allocated or the queue pair is made. So there can be memory before there is a connection. Loop
// goroutine.
type home struct {
	l     *loop
	area  *datapath.Area
	bytes int  // of AllocMemory
	left  bool // the identifier has gone, or Dial has gone on to another address
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

// moveIn makes the home, once.
func (it *ident) moveIn() (*home, error) {
	if it.home == nil {
		area, err := it.l.NewArea(it.id.Device())
		if err != nil {
			return nil, err
		}
		it.home = &home{l: it.l, area: area}
	}
	return it.home, nil
}

// moveOut leaves the home. What is registered there stays until the queue pair is gone.
func (it *ident) moveOut() {
	if h := it.home; h != nil {
		it.home, h.left = nil, true
		h.area.Leave()
	}
}
