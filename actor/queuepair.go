package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// prepare replaces the user's private data by that for the wire, and makes the queue pair.
func (it *ident) prepare(mode datapath.Mode, private *[]byte, limit int) (err error) {
	if *private, err = it.privateData(mode, *private, limit); err != nil {
		return err
	}
	return it.queuePair(mode)
}

// privateData puts the hello before the user's private data.
func (it *ident) privateData(mode datapath.Mode, user []byte, limit int) ([]byte, error) {
	hello := mode == datapath.ModeMessages && !it.id.Datagram()
	if hello {
		limit = min(limit-wire.HelloLen, wire.MaxUserData)
	}
	switch {
	case len(user) > limit:
		return nil, fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), limit, unix.EINVAL)
	case !hello:
		return user, nil
	}
	var attr verbs.DeviceAttr
	if dev := it.id.Device(); dev != nil {
		attr = dev.Attr()
	}
	t := it.terms(mode)
	return it.l.Hello(&t, attr).Put(user), nil
}

// depths combines the limits on Reads of a user's Connect or Accept with those of the peer's
// request, if there is one. nil leaves them to the device, which has some.
func (it *ident) depths(p, request *cmid.ConnParam) {
	it.served, it.reading = true, true
	for _, p := range [...]*cmid.ConnParam{p, request} {
		if p != nil {
			it.served = it.served && p.ResponderResources > 0
			it.reading = it.reading && p.InitiatorDepth > 0
		}
	}
}

// terms returns the requested properties of the connection.
func (it *ident) terms(m datapath.Mode) datapath.Terms {
	t := datapath.Terms{
		Mode: m, Credits: it.cfg.Credits, Messages: it.cfg.MaxMessage, SendMost: it.cfg.MaxSend, Sends: it.cfg.Sends, Eager: it.cfg.eager,
		Reads: it.reading, Serves: it.served, Keepalive: datapath.NewKeepalive(it.cfg.Keepalive.Idle, it.cfg.Keepalive.Gone), Peer: it.peer.hello,
		Rekey: it.cfg.rekey, Stream: it.cfg.Stream,
	}
	it.handshake.addTo(&t)
	if it.conn != nil {
		t.Promised = it.conn.Promised() // the hello may be repeated, after a refusal
	}
	return t
}

// queuePair makes the data path, once.
func (it *ident) queuePair(mode datapath.Mode) error {
	if it.conn != nil {
		it.conn.Want(it.terms(mode))
		return nil
	}
	if it.leavesQueuePair() {
		return nil
	}
	t := it.terms(mode)
	if it.cfg.Memory > 0 || it.cfg.Domain != nil {
		h, err := it.moveIn()
		if err != nil {
			return err
		}
		t.Area = h.area
	}
	c, err := datapath.New(&it.l.Loop, it.id, it, t)
	it.conn = c
	if err == nil && it.notifiable {
		c.Granted()
	}
	return err
}
