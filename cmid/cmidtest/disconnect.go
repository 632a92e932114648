package cmidtest

import (
	"cmp"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// disconnect implements rdma_disconnect(3). On InfiniBand it asks the peer, which answers; on iWARP
// it ends both sides immediately.
func (id *driverID) disconnect() error {
	f := id.in.f
	if id.state != states.Connected && id.state != states.PeerDisconnected {
		return nil // it has ended already, or is about to
	}
	id.qp.fail()
	switch {
	case f.iwarp:
		id.sendStatus(MsgDREQ, 0)
		id.state = states.Timewait
		end := cmp.Or(id.lost, &message{})
		id.runLater(func() {
			id.in.deliverEvent(id, cmid.DriverEvent{Kind: states.KindDisconnected, Status: end.status, Err: end.err})
		})
	case id.state == states.PeerDisconnected:
		id.sendStatus(MsgDREP, 0)
		id.enterTimewait()
	default:
		id.state = states.Disconnecting
		id.sendUntilAnswered(MsgDREQ, &message{}, func() { id.finishDisconnect(-int32(unix.ETIMEDOUT)) })
	}
	return nil
}

// finishDisconnect ends the connection on the side that has called Disconnect.
func (id *driverID) finishDisconnect(status int32) {
	id.enterTimewait()
	id.reportKind(states.KindDisconnected, status)
}

func (id *driverID) enterTimewait() {
	id.state = states.Timewait
	id.setTimer(timewait, func() { id.reportKind(states.KindTimewaitExit, 0) })
}

// gotDisconnect handles the peer's disconnect. On iWARP that is the end of the stream.
func (in *instance) gotDisconnect(id *driverID, p *packet) {
	switch {
	case in.f.iwarp:
		if id != nil {
			id.gotEndOfStream(p)
		}
	case id == nil:
		in.f.answerPacket(p, p.to, MsgDREP, 0)
	default:
		switch id.state {
		case states.Accepting, states.Connected:
			id.timer.stop()
			id.changeState(states.PeerDisconnected, states.KindDisconnected, 0)
		case states.Disconnecting: // both simultaneously
			id.sendStatus(MsgDREP, 0)
			id.finishDisconnect(0)
		case states.Timewait:
			id.sendStatus(MsgDREP, 0) // the first one was lost
		default:
		}
	}
}

func (id *driverID) gotDisconnectReply(p *packet) {
	if id.state == states.Disconnecting && id.far == p.from {
		id.finishDisconnect(0)
	}
}

// gotEndOfStream handles a FIN, a Terminate or a RST on iWARP.
func (id *driverID) gotEndOfStream(p *packet) {
	switch id.state {
	case states.ConnectRequested:
		id.state, id.reset = states.Failed, true // no event: the accept will fail
	case states.Connecting:
		id.failConnection(states.KindRejected, connReset)
	case states.Connected:
		// A FIN and a Terminate come after the messages that wait for a receive.
		if q := id.qp; q != nil && q.waiting.Len() > 0 && id.lost == nil && (p.cm.status == 0 || p.cm.err != nil) {
			q.waiting.Push(*p)
			q.handleOverlooked()
			return
		}
		id.failLost(p.cm)
	default:
	}
}

// breakConnection does what Fabric.Disconnect asks for.
func (id *driverID) breakConnection() {
	if id.ps.Datagram() || id.state != states.Connected && id.state != states.Accepting {
		return
	}
	id.sendStatus(MsgDREQ, connReset)
	id.in.gotDisconnect(id, &packet{kind: MsgDREQ, from: id.far, to: id.ownEndpoint(), cm: &message{status: connReset}})
}
