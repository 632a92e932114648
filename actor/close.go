package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// close ends a connection in order: drain, rdma_disconnect(3), rdma_destroy_id(3). Everything else
// it destroys at once.
func (it *ident) close(c *Close, sender *actor.PID, then func(Event)) {
	it.asked = append(it.asked, &asked{
		cmd: c, sender: sender, then: then,
		due: it.l.el.Now().Add(positive(c.Timeout, it.rt.cfg.Timeouts.Close)),
	})
	switch {
	case it.conn == nil || it.conn.Connecting() || it.id.State() != states.Connected:
		if it.id.State() != states.Disconnecting { // else Disconnected is on its way
			it.destroy(nil)
			return
		}
		it.rearm()
	case it.conn.Closing(): // because of another Close
		it.rearm()
	case it.conn.Over(): // broken off, and the owner is Manual
		it.rearm()
		it.disconnect()
	default:
		it.rearm()
		it.conn.Drain()
	}
}

// poisoned ends an identifier as Close does.
func (it *ident) poisoned() {
	if !it.ending() {
		it.close(&Close{}, nil, func(Event) {})
	}
}

// closeAwaits says what a Close waits for its peer to do.
func (it *ident) closeAwaits() string {
	switch c := it.conn; {
	case c == nil || c.Leaving() || it.id.State() != states.Connected:
		return "answered the disconnect" // all else is done
	case c.Acknowledged():
		return "consumed everything"
	}
	return "taken everything"
}

// leave is Disconnect: the goodbye goes first.
func (it *ident) leave(c *cmid.Disconnect, sender *actor.PID) {
	a := &asked{cmd: c, sender: sender}
	if !it.legal(c) || it.leaving != nil {
		it.do(a)
		return
	}
	it.asked = append(it.asked, a)
	it.leaving = c
	it.farewell(func() {
		it.leaving = nil
		it.begin(a)
	})
}

// disconnect follows the drain. Disconnected then brings the end.
func (it *ident) disconnect() {
	if it.ending() || !it.legal(&cmid.Disconnect{}) {
		return
	}
	it.do(&asked{cmd: &cmid.Disconnect{}, then: func(ev Event) {
		var cause error
		if d, ok := ev.(*cmid.Disconnected); ok {
			it.tell(d)
			cause = d.Err
		}
		if _, ok := ev.(Failure); ok || it.cfg.Manual {
			it.destroy(cause)
		}
	}})
}
