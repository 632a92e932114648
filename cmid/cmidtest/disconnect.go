package cmidtest

import (
	"cmp"

	"golang.org/x/sys/unix"

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
		id.cm.sendStatus(MsgDREQ, 0)
		id.state = states.Timewait
		end := cmp.Or(id.stream.lost, &message{})
		id.runLater(func() { id.reportEnd(end) })
	case id.state == states.PeerDisconnected:
		id.cm.sendStatus(MsgDREP, 0)
		id.enterTimewait()
	default:
		id.state = states.Disconnecting
		id.cm.sendUntilAnswered(MsgDREQ, &message{}, func() { id.finishDisconnect(-int32(unix.ETIMEDOUT)) })
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
			id.stream.gotEnd(p)
		}
	case id == nil:
		in.f.answerPacket(p, p.to, MsgDREP, 0)
	default:
		switch id.state {
		case states.Accepting, states.Connected:
			id.timer.stop()
			id.changeState(states.PeerDisconnected, states.KindDisconnected, 0)
		case states.Disconnecting: // both simultaneously
			id.cm.sendStatus(MsgDREP, 0)
			id.finishDisconnect(0)
		case states.Timewait:
			id.cm.sendStatus(MsgDREP, 0) // the first one was lost
		default:
		}
	}
}

func (id *driverID) gotDisconnectReply(p *packet) {
	if id.state == states.Disconnecting && id.cm.far == p.from {
		id.finishDisconnect(0)
	}
}

// breakConnection does what Fabric.Disconnect asks for.
func (id *driverID) breakConnection() {
	if id.ps.Datagram() || id.state != states.Connected && id.state != states.Accepting {
		return
	}
	id.cm.sendStatus(MsgDREQ, connReset)
	id.in.gotDisconnect(id, &packet{kind: MsgDREQ, from: id.cm.far, to: id.self, cm: &message{status: connReset}})
}
