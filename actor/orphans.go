package actor

import "github.com/rdmactor/rdmactor/actor/internal/datapath"

import "github.com/rdmactor/rdmactor/cmid"

// discard destroys an identifier that has no actor, or another one in its place; c is its
// connection, nil without one. A device may take its time: the kernel's rdma_cm up to 100 s
// (rdma_destroy_id(3) waits for what is under way).
func (l *loop) discard(id *cmid.ID, c *datapath.Conn) {
	if c != nil {
		c.Stop()
	}
	if id.Do(&cmid.DestroyID{}) == nil {
		l.lose(id, c)
	} else if c != nil {
		c.Release()
	}
}

// lose leaves an identifier that is being destroyed to its device.
func (l *loop) lose(id *cmid.ID, c *datapath.Conn) {
	id.Context = nil
	if l.lost == nil {
		l.lost = make(map[*cmid.ID]*datapath.Conn)
	}
	l.lost[id] = c
}

// found ends what lose began: the device has given the identifier back.
func (l *loop) found(id *cmid.ID) {
	c, ok := l.lost[id]
	if !ok {
		return
	}
	delete(l.lost, id)
	if c != nil {
		c.Release()
	}
	l.checkEmptied()
}

// empty reports whether no identifier is left, and none may come.
func (l *loop) empty() bool { return len(l.ids) == 0 && len(l.lost) == 0 && l.coming.Load() == 0 }

// checkEmptied tells Shutdown.
func (l *loop) checkEmptied() {
	if l.empty() && l.emptied != nil {
		l.emptied()
	}
}
