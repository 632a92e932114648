package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
)

// discard destroys an identifier that has no actor, or another one in its place; c is its
// connection, nil without one. A device may take its time: the kernel's rdma_cm up to 100 s
// (rdma_destroy_id(3) waits for what is under way).
func (l *loop) discard(id *cmid.ID, c *datapath.Conn) {
	if c != nil {
		c.Stop()
	}
	if id.Do(&cmid.DestroyID{}) == nil {
		l.adopt(id, c)
	} else if c != nil {
		c.Release()
	}
}

// adopt keeps an identifier without an actor until its device has given it back.
func (l *loop) adopt(id *cmid.ID, c *datapath.Conn) {
	id.Context = nil
	if l.orphans == nil {
		l.orphans = make(map[*cmid.ID]*datapath.Conn)
	}
	l.orphans[id] = c
}

// orphanReturned ends what adopt began: the device has given the identifier back.
func (l *loop) orphanReturned(id *cmid.ID) {
	c, ok := l.orphans[id]
	if !ok {
		return
	}
	delete(l.orphans, id)
	if c != nil {
		c.Release()
	}
	l.checkEmptied()
}

// empty reports whether no identifier is left, and none may come.
func (l *loop) empty() bool { return len(l.ids) == 0 && len(l.orphans) == 0 && l.coming.Load() == 0 }

// checkEmptied tells Shutdown.
func (l *loop) checkEmptied() {
	if l.empty() && l.emptied != nil {
		l.emptied()
	}
}
