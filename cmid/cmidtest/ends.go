package cmidtest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// failConnection reports that there will be no connection.
func (id *driverID) failConnection(kind states.Kind, status int32) {
	id.timer.stop()
	id.state = states.Failed
	if !id.ps.Datagram() {
		id.qp.fail()
	}
	id.reportKind(kind, status)
}

// failUnanswered ends an identifier whose message was not answered.
func (id *driverID) failUnanswered() {
	id.failConnection(states.KindUnreachable, -int32(unix.ETIMEDOUT))
}

// becomeEstablished ends the handshake on the passive side.
func (id *driverID) becomeEstablished() {
	if id.state == states.Accepting {
		id.timer.stop()
		id.changeState(states.Connected, states.KindEstablished, 0)
	}
}

// endStream ends an iWARP connection on this side.
func (id *driverID) endStream(m *message) {
	id.timer.stop()
	id.qp.fail()
	id.state = states.Timewait
	id.in.deliverEvent(id, cmid.DriverEvent{Kind: states.KindDisconnected, Status: m.status, Err: m.err})
}

// failLost ends an iWARP connection that is lost, because of a reset or because nothing was
// acknowledged. The embedded device first delivers the messages that wait for a receive, until none
// is received for embeddedGiveUp. Until then it sends nothing.
func (id *driverID) failLost(m *message) {
	switch {
	case !id.in.f.embedded || id.qp == nil || id.qp.waiting.Len() == 0:
		id.endStream(m)
	case id.lost == nil:
		id.lost = m
		id.waitLost()
	}
}

// waitLost gives the messages of a lost connection time to be received.
func (id *driverID) waitLost() { id.setTimer(embeddedGiveUp, id.endLost) }

// endLost ends a connection that is lost.
func (id *driverID) endLost() {
	if id.lost != nil && id.state == states.Connected {
		id.endStream(id.lost)
	}
}

// terminate ends an iWARP connection with an error, at both ends.
func (q *qp) terminate(why string) {
	m := &message{status: connReset, err: fmt.Errorf("%s: terminated: %w", why, unix.ECONNRESET)}
	q.id.sendMessage(MsgDREQ, m)
	q.id.endStream(m)
}

// enterError moves the queue pair to its error state. On iWARP the connection ends as well.
func (q *qp) enterError(why string) {
	if q.in.f.iwarp {
		q.terminate(why)
		return
	}
	q.fail()
}

// How long TCP repeats unacknowledged bytes before it gives up the connection. The embedded device
// sets TCP_USER_TIMEOUT (iwarp.Config.UserTimeout). Without that Linux tries 15 times.
const (
	embeddedGiveUp = 30 * time.Second
	kernelGiveUp   = 924600 * time.Millisecond
)

// setStalled records whether a stream has bytes that are not acknowledged.
func (in *instance) setStalled(who endpoint, yes bool) {
	id := in.ids[who.h]
	switch {
	case id == nil:
	case !yes:
		id.clearStall()
	case !id.stalling:
		id.stalling = true
		limit := kernelGiveUp
		if in.f.embedded {
			limit = embeddedGiveUp
		}
		id.stall.start(in.loop, limit, id.giveUp)
	}
}

// giveUp ends a connection because TCP has got no acknowledgement for too long.
func (id *driverID) giveUp() {
	id.in.f.dropUnsent(id.ownEndpoint())
	if id.state == states.Connected {
		id.failLost(&message{status: -int32(unix.ETIMEDOUT), err: fmt.Errorf("nothing was acknowledged for too long: %w", unix.ETIMEDOUT)})
	}
}
