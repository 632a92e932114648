package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// destroy ends the identifier as rdma_destroy_id(3) does, with what that tells the peer.
func (id *ident) destroy() {
	if id.alive() {
		id.vanish()
		delete(id.in.ids, id.h)
	}
}

// vanish is destroy of an identifier that its instance has let go of.
func (id *ident) vanish() {
	id.abandon()
	id.unbind()
	id.disarm()
	id.unstall()
	if id.qp != nil {
		id.qp.release()
	}
	if id.key.in != nil {
		id.in.host.answered(id.key, id)
	}
	id.in.host.count(-1)
	id.state = states.Destroying
}

// abandon tells the peer that nobody is here any more.
func (id *ident) abandon() {
	switch {
	case id.ps.Datagram():
		if id.state == states.ConnectRequested {
			id.answerLookup(sidrReject, nil)
		}
		return
	case id.in.f.iwarp:
		switch id.state {
		case states.Connected: // it says FIN
			id.send(MsgDREQ, &message{})
		case states.Connecting, states.ConnectRequested:
			id.send(MsgDREQ, &message{status: -int32(unix.ECONNRESET)})
		default:
		}
		return
	}
	switch id.state {
	case states.Connecting:
		id.send(MsgREJ, &message{status: int32(cmid.RejectTimeout)})
	case states.ConnectRequested, states.Responded, states.Accepting:
		id.send(MsgREJ, &message{status: int32(cmid.RejectConsumerDefined)})
	case states.Connected:
		id.send(MsgDREQ, &message{})
	case states.PeerDisconnected:
		id.send(MsgDREP, &message{})
	default:
	}
}

// removeDevice takes the device away. A request nobody has answered yet is not told: its Accept
// will fail with ENXIO.
func (id *ident) removeDevice() {
	silent := id.state == states.ConnectRequested
	id.abandon()
	id.unbind()
	id.disarm()
	id.unstall()
	if id.qp != nil {
		id.qp.fail()
	}
	id.opening = nil
	id.state = states.Removed
	if !silent {
		id.tell(states.KindDeviceRemoval, 0)
	}
}

// dropRemoved tells the identifiers of removed devices.
func (in *instance) dropRemoved() {
	in.f.mu.Lock()
	var gone []*ident
	for _, id := range in.ids {
		if id.dev != nil && id.dev.removed && id.state != states.Removed {
			gone = append(gone, id)
		}
	}
	in.f.mu.Unlock()
	oldestFirst(gone)
	for _, id := range gone {
		id.removeDevice()
	}
}

func oldestFirst(all []*ident) {
	slices.SortFunc(all, func(a, b *ident) int { return int(int64(a.h) - int64(b.h)) })
}

// sorted is the identifiers, oldest first.
func (in *instance) sorted() []*ident {
	all := make([]*ident, 0, len(in.ids))
	for _, id := range in.ids {
		all = append(all, id)
	}
	oldestFirst(all)
	return all
}
