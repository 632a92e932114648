package cmidtest

import (
	"fmt"

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

// reportEnd delivers Disconnected with the cause.
func (id *driverID) reportEnd(m *message) {
	id.in.deliverEvent(id, cmid.DriverEvent{Kind: states.KindDisconnected, Status: m.status, Err: m.err})
}

// terminate ends an iWARP connection with an error, at both ends.
func (q *qp) terminate(why string) {
	m := &message{status: connReset, err: fmt.Errorf("%s: terminated: %w", why, unix.ECONNRESET)}
	q.id.cm.send(MsgDREQ, m)
	q.id.stream.end(m)
}

// enterError moves the queue pair to its error state. On iWARP the connection ends as well.
func (q *qp) enterError(why string) {
	if q.in.f.iwarp {
		q.terminate(why)
		return
	}
	q.fail()
}
