package cmidtest

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// openStream connects on iWARP: first a TCP connection, then the MPA request. On soft-iWARP the
// command waits for TCP, and fails if TCP fails. The embedded device's command does not wait, and
// an event reports the failure.
func (id *driverID) openStream(c *cmid.Connect, m *message) error {
	f := id.in.f
	_, what := id.findListener()
	f.mu.Lock()
	rtt := 2 * f.latencyLocked(id.local.Addr(), id.peer.Addr())
	f.mu.Unlock()
	timeout, err := tcpTimeout, cmid.ErrPending
	if f.embedded {
		timeout, err = replyTimeout, nil
	}
	id.opening = c
	switch {
	case what == foundSilence, rtt > timeout:
		id.setTimer(timeout, func() { id.streamFailed(c, states.KindUnreachable, unix.ETIMEDOUT) })
	case what == foundNobody, what == foundOther:
		id.runAfter(rtt, func() { id.streamFailed(c, states.KindRejected, unix.ECONNREFUSED) })
	default:
		if f.embedded { // soft-iWARP has no timer: a full backlog rejects it
			id.setTimer(timeout, func() { id.streamFailed(c, states.KindUnreachable, unix.ETIMEDOUT) })
		}
		id.runAfter(rtt, func() { id.streamOpen(c, m) })
	}
	return err
}

// streamFailed ends a Connect because TCP has failed. kind is the event that the embedded device
// reports.
func (id *driverID) streamFailed(c *cmid.Connect, kind states.Kind, errno unix.Errno) {
	switch {
	case id.opening != c:
	case id.in.f.embedded:
		id.opening = nil
		id.failConnection(kind, -int32(errno))
	default:
		id.opening, id.state = nil, states.RouteResolved
		id.reportDone(errno)
	}
}

// streamOpen sends the MPA request.
func (id *driverID) streamOpen(c *cmid.Connect, m *message) {
	if id.opening != c {
		return
	}
	b, what := id.findListener()
	// TCP tries again when it finds the backlog full.
	if what == foundFull && id.in.f.embedded {
		id.runAfter(synRepeat, func() { id.streamOpen(c, m) })
		return
	}
	id.opening = nil
	id.setTimer(replyTimeout, id.timedOut)
	p := id.newPacket(MsgREQ, m)
	switch what {
	case foundListener:
		id.sendRequest(p, b)
	case foundNobody, foundOther, foundFull:
		id.in.f.answerPacket(&p, endpoint{}, MsgDREQ, connReset)
	case foundSilence:
	}
	if !id.in.f.embedded {
		id.reportDone(nil)
	}
}

// timedOut closes a stream because no MPA reply came.
func (id *driverID) timedOut() {
	id.sendStatus(MsgDREQ, connReset)
	id.failUnanswered()
}
