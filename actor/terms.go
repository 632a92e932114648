package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// privateData puts the hello before the user's private data.
func (e *endpoint) privateData(mode datapath.Mode, user []byte, limit int) ([]byte, error) {
	hello := mode == datapath.ModeMessages && !e.id.Datagram()
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
	if dev := e.id.Device(); dev != nil {
		attr = dev.Attr()
	}
	t := e.newTerms(mode)
	return e.l.Hello(&t, attr).Put(user), nil
}

// setReadLimits combines the limits on Reads of a user's Connect or Accept with those of the peer's
// request, if there is one. nil leaves them to the device, which has some.
func (e *endpoint) setReadLimits(p, request *cmid.ConnParam) {
	e.served, e.reading = true, true
	for _, p := range [...]*cmid.ConnParam{p, request} {
		if p != nil {
			e.served = e.served && p.ResponderResources > 0
			e.reading = e.reading && p.InitiatorDepth > 0
		}
	}
}

// newTerms returns the requested properties of the connection.
func (e *endpoint) newTerms(m datapath.Mode) datapath.Terms {
	t := datapath.Terms{
		Mode: m, Credits: e.cfg.Credits, Messages: e.cfg.MaxMessage, SendMost: e.cfg.MaxSend, Sends: e.cfg.Sends, Eager: e.cfg.eager,
		Reads: e.reading, Serves: e.served, Keepalive: datapath.NewKeepalive(e.cfg.Keepalive.Idle, e.cfg.Keepalive.Gone), Peer: e.peer.hello,
		Rekey: e.cfg.rekey, Stream: e.cfg.Stream,
	}
	if e.conn != nil {
		t.Promised = e.conn.Promised() // the hello may be repeated, after a refusal
	}
	return t
}

// newHello returns this side's hello on a secured connection.
func (e *endpoint) newHello(own secure.Features) wire.Hello {
	t := e.newTerms(datapath.ModeMessages)
	t.Features = uint8(own)
	return e.l.Hello(&t, e.id.Device().Attr())
}
