package cmidtest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// destroy ends the identifier as rdma_destroy_id(3) does. The peer is notified.
func (id *driverID) destroy() {
	if id.isAlive() {
		id.destroyInPlace()
		delete(id.in.ids, id.h)
	}
}

// destroyInPlace destroys the identifier, but leaves it in the instance's map.
func (id *driverID) destroyInPlace() {
	id.letGo()
	if id.qp != nil {
		id.qp.release()
	}
	if id.cm.isPassive() {
		id.in.host.requests.CompareAndDelete(id.cm.key, id.self)
	}
	id.in.host.countDriverIDs(-1)
	id.state = states.Destroying
}

// letGo notifies the peer, and frees all but the identifier's queue pair.
func (id *driverID) letGo() {
	id.notifyPeer()
	id.freePort()
	id.timer.stop()
	id.stream.setStalled(false)
}

// notifyPeer notifies the peer that the identifier is gone.
func (id *driverID) notifyPeer() {
	switch {
	case id.ps.Datagram():
		if id.state == states.ConnectRequested {
			id.answerLookup(sidrReject, &message{})
		}
		return
	case id.in.f.iwarp:
		switch id.state {
		case states.Connected: // FIN
			id.cm.sendStatus(MsgDREQ, 0)
		case states.Connecting, states.ConnectRequested:
			id.cm.sendStatus(MsgDREQ, connReset)
		default:
		}
		return
	}
	switch id.state {
	case states.Connecting:
		id.cm.sendStatus(MsgREJ, int32(cmid.RejectTimeout))
	case states.ConnectRequested, states.Responded, states.Accepting:
		id.cm.sendStatus(MsgREJ, int32(cmid.RejectConsumerDefined))
	case states.Connected:
		id.cm.sendStatus(MsgDREQ, 0)
	case states.PeerDisconnected:
		id.cm.sendStatus(MsgDREP, 0)
	default:
	}
}

// removeDevice ends the identifier because its device is gone. A request that is not answered yet
// gets no event. Its Accept will fail with ENXIO.
func (id *driverID) removeDevice() {
	silent := id.state == states.ConnectRequested
	id.letGo()
	id.qp.fail()
	id.stream.opening = nil
	id.state = states.Removed
	if !silent {
		id.reportKind(states.KindDeviceRemoval, 0)
	}
}

// dropRemoved ends the identifiers of removed devices.
func (in *instance) dropRemoved() {
	for _, id := range in.sortedDriverIDs() {
		if id.state != states.Removed && id.dev.isRemoved() {
			id.removeDevice()
		}
	}
}

// sortedDriverIDs returns the identifiers, oldest first.
func (in *instance) sortedDriverIDs() []*driverID {
	return slices.SortedFunc(maps.Values(in.ids), func(a, b *driverID) int { return cmp.Compare(a.h, b.h) })
}
