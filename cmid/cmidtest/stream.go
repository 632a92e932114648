package cmidtest

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// openStream plays iWARP's connect: a TCP connection first, which fails as the command's own failure, then the MPA request.
func (id *ident) openStream(c *cmid.Connect, m *message) {
	f := id.in.f
	_, what := id.lookup()
	f.mu.Lock()
	rtt := 2 * f.latency(id.local.Addr().WithZone(""), id.peer.Addr().WithZone(""))
	f.mu.Unlock()
	switch what {
	case foundSilence:
		id.arm(tcpTimeout, func() { id.streamFailed(c, unix.ETIMEDOUT) })
	case foundNobody, foundOther:
		id.after(rtt, func() { id.streamFailed(c, unix.ECONNREFUSED) })
	case foundListener, foundFull:
		id.after(rtt, func() { id.streamOpen(c, m) })
	}
}

func (id *ident) streamFailed(c *cmid.Connect, errno unix.Errno) {
	if id.pending == c {
		id.pending, id.state = nil, states.RouteResolved
		id.in.up.Done(id.h, c, errno)
	}
}

// streamOpen sends the MPA request.
func (id *ident) streamOpen(c *cmid.Connect, m *message) {
	if id.pending != c {
		return
	}
	id.pending = nil
	id.arm(replyTimeout, func() { id.timedOut() })
	b, what := id.lookup()
	switch what {
	case foundListener:
		id.ask(MsgREQ, m, b)
	case foundNobody, foundOther, foundFull:
		id.in.f.send(packet{
			kind: MsgDREQ, to: id.self(), src: id.peer.Addr(), dst: id.local.Addr(), cm: &message{status: -int32(unix.ECONNRESET)},
		})
	case foundSilence:
	}
	id.in.up.Done(id.h, c, nil)
}

// timedOut closes a stream on which no MPA reply came.
func (id *ident) timedOut() {
	id.send(MsgDREQ, &message{status: -int32(unix.ECONNRESET)})
	id.ended(states.KindUnreachable, -int32(unix.ETIMEDOUT))
}
