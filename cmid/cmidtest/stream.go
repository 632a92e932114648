package cmidtest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// stream is the TCP connection of an identifier. Only iWARP uses it.
type stream struct {
	id       *driverID
	opening  *cmid.Connect // it is not open yet
	reset    bool          // it belongs to a request whose peer gave up
	lost     *message      // how it was lost, while messages wait
	stall    clock         // TCP's timer for a link that is cut
	stalling bool          // stall runs
}

// open connects: first the TCP connection, then the MPA request. On soft-iWARP the command waits
// for TCP, and fails if TCP fails. The embedded device's command does not wait, and an event
// reports the failure.
func (s *stream) open(c *cmid.Connect, m *message) error {
	id := s.id
	f := id.in.f
	_, what := id.findListener(id.cm.far)
	f.mu.Lock()
	rtt := 2 * f.latencyLocked(id.local.Addr(), id.peer.Addr())
	f.mu.Unlock()
	timeout, err := tcpTimeout, cmid.ErrPending
	if f.embedded {
		timeout, err = replyTimeout, nil
	}
	s.opening = c
	switch {
	case what == foundSilence, rtt > timeout:
		id.setTimer(timeout, func() { s.openFailed(c, states.KindUnreachable, unix.ETIMEDOUT) })
	case what == foundNobody, what == foundOther:
		id.runAfter(rtt, func() { s.openFailed(c, states.KindRejected, unix.ECONNREFUSED) })
	default:
		if f.embedded { // soft-iWARP has no timer: a full backlog rejects it
			id.setTimer(timeout, func() { s.openFailed(c, states.KindUnreachable, unix.ETIMEDOUT) })
		}
		id.runAfter(rtt, func() { s.requestConnection(c, m) })
	}
	return err
}

// openFailed ends a Connect because TCP has failed. kind is the event that the embedded device
// reports.
func (s *stream) openFailed(c *cmid.Connect, kind states.Kind, errno unix.Errno) {
	switch {
	case s.opening != c:
	case s.id.in.f.embedded:
		s.opening = nil
		s.id.failConnection(kind, -int32(errno))
	default:
		s.opening, s.id.state = nil, states.RouteResolved
		s.id.reportDone(errno)
	}
}

// requestConnection sends the MPA request.
func (s *stream) requestConnection(c *cmid.Connect, m *message) {
	if s.opening != c {
		return
	}
	id := s.id
	b, what := id.findListener(id.cm.far)
	// TCP tries again when it finds the backlog full.
	if what == foundFull && id.in.f.embedded {
		id.runAfter(synRepeat, func() { s.requestConnection(c, m) })
		return
	}
	s.opening = nil
	id.setTimer(replyTimeout, s.timeOut)
	p := id.cm.newPacket(MsgREQ, m)
	switch what {
	case foundListener:
		id.cm.sendRequest(p, b)
	case foundNobody, foundOther, foundFull:
		id.in.f.answerPacket(&p, endpoint{}, MsgDREQ, connReset)
	case foundSilence:
	}
	if !id.in.f.embedded {
		id.reportDone(nil)
	}
}

// timeOut closes the stream because no MPA reply came.
func (s *stream) timeOut() {
	s.id.cm.sendStatus(MsgDREQ, connReset)
	s.id.failUnanswered()
}

// gotEnd handles a FIN, a Terminate or a RST.
func (s *stream) gotEnd(p *packet) {
	id := s.id
	switch id.state {
	case states.ConnectRequested:
		id.state, s.reset = states.Failed, true // no event: the accept will fail
	case states.Connecting:
		id.failConnection(states.KindRejected, connReset)
	case states.Connected:
		// A FIN and a Terminate come after the messages that wait for a receive.
		if q := id.qp; q != nil && q.waiting.Len() > 0 && s.lost == nil && (p.cm.status == 0 || p.cm.err != nil) {
			q.waiting.Push(*p)
			q.handleOverlooked()
			return
		}
		s.lose(p.cm)
	default:
	}
}

// end ends the connection on this side.
func (s *stream) end(m *message) {
	s.id.timer.stop()
	s.id.qp.fail()
	s.id.state = states.Timewait
	s.id.reportEnd(m)
}

// lose ends a connection that is lost, because of a reset or because nothing was acknowledged. The
// embedded device first delivers the messages that wait for a receive, until none is received for
// embeddedGiveUp. Until then it sends nothing.
func (s *stream) lose(m *message) {
	switch q := s.id.qp; {
	case !s.id.in.f.embedded || q == nil || q.waiting.Len() == 0:
		s.end(m)
	case s.lost == nil:
		s.lost = m
		s.awaitReceives()
	}
}

// awaitReceives gives the messages of a lost connection time to be received.
func (s *stream) awaitReceives() { s.id.setTimer(embeddedGiveUp, s.endLost) }

// endLost ends a connection that is lost.
func (s *stream) endLost() {
	if s.lost != nil && s.id.state == states.Connected {
		s.end(s.lost)
	}
}

// How long TCP repeats unacknowledged bytes before it gives up the connection. The embedded device
// sets TCP_USER_TIMEOUT (iwarp.Config.UserTimeout). Without that Linux tries 15 times.
const (
	embeddedGiveUp = 30 * time.Second
	kernelGiveUp   = 924600 * time.Millisecond
)

// setStalled records whether the stream has bytes that are not acknowledged.
func (s *stream) setStalled(yes bool) {
	switch {
	case !yes:
		s.stalling = false
		s.stall.stop()
	case !s.stalling:
		s.stalling = true
		limit := kernelGiveUp
		if s.id.in.f.embedded {
			limit = embeddedGiveUp
		}
		s.stall.start(s.id.in.loop, limit, s.giveUp)
	}
}

// giveUp ends the connection because TCP has got no acknowledgement for too long.
func (s *stream) giveUp() {
	s.id.in.f.dropUnsent(s.id.self)
	if s.id.state == states.Connected {
		s.lose(&message{status: -int32(unix.ETIMEDOUT), err: fmt.Errorf("nothing was acknowledged for too long: %w", unix.ETIMEDOUT)})
	}
}
