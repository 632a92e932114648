package ucm

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// Ready fetches events until there are none, but at most as many as there are identifiers that may
// have one. With few identifiers that saves the last attempt, which would find nothing. Events
// that are left are found in the next turn.
func (in *instance) Ready(eventloop.Events) {
	in.fetchEvents(min(max(len(in.ids)-in.listeners, 1), eventsPerTurn))
}

// catchUp fetches events that no wake-up has announced: when the kernel moves a migrated
// identifier's events to this channel, it does not make the descriptor readable.
func (in *instance) catchUp() {
	if in.fetchEvents(eventsPerTurn) {
		_ = in.loop.Post(in.catchUp) // refused when the loop ends, and events no longer matter
	}
}

// fetchEvents fetches up to n events, and reports whether there may be more.
func (in *instance) fetchEvents(n int) (more bool) {
	for range n {
		if in.closed || in.lost != nil {
			return false
		}
		err := in.file.GetEvent(&in.got)
		switch {
		case err == nil:
			in.dispatchEvent(&in.got)
		case errors.Is(err, unix.EAGAIN):
			return false
		default:
			in.failChannel(fmt.Errorf("get_event: %w", err))
			return false
		}
	}
	return true
}

// dispatchEvent delivers an event if its identifier still exists. Identifiers are found by uid,
// because the kernel reuses its numbers immediately.
func (in *instance) dispatchEvent(ev *uabi.EventResp) {
	h := cmid.Handle(ev.UID)
	if ev.Event == uabi.EventConnectRequest {
		in.takeRequest(in.ids[h], ev)
		return
	}
	if g := in.groups[h]; g != nil {
		g.deliverEvent(ev)
		return
	}
	if id := in.ids[h]; id != nil {
		id.deliverInOrder(ev)
	}
}

// takeRequest takes the identifier that a request brings. It has no uid before it is accepted, so
// the kernel reports nothing of it till then. If the listener is gone it is destroyed, because it
// would never be answered.
func (in *instance) takeRequest(listener *driverID, ev *uabi.EventResp) {
	child := &driverID{in: in, kid: ev.ID, phase: half}
	if listener == nil || !child.meantFor(listener) {
		child.ending = &ended{}
		child.giveBackOffLoop()
		return
	}
	in.ids[child.h] = child
	in.decodeEvent(child.datagram, ev)
	child.offered = in.event.Param
	in.event.Child = child
	in.up.Event(listener.h, &in.event)
}

// meantFor makes a request's identifier the listener's. False: its device has just gone, or it is
// not meant for the listener, and is rejected.
func (id *driverID) meantFor(listener *driverID) bool {
	id.h, id.datagram, id.listener = id.in.up.NewHandle(), listener.datagram, listener.h
	err := id.queryAddrs()
	if errors.Is(err, unix.EINVAL) && id.migrateHere(listener) {
		err = id.queryAddrs()
	}
	if err != nil || listener.acceptsFrom(id.local.Addr()) {
		return err == nil
	}
	_ = id.in.file.Reject(&uabi.Reject{ID: id.kid, Reason: uint8(cmid.RejectConsumerDefined)})
	return false
}

// acceptsFrom reports whether a request to ip is meant for the listener. The kernel treats loopback
// as a wildcard, but a listener there must be reachable from this host only.
func (id *driverID) acceptsFrom(ip netip.Addr) bool {
	return !id.local.Addr().IsLoopback() || ip.Unmap().IsLoopback()
}

// migrateHere brings a request's identifier here from the channel where its listener was when it
// came: the kernel leaves it there.
func (id *driverID) migrateHere(listener *driverID) bool {
	for _, f := range listener.past {
		if f.Closed() {
			continue
		}
		if _, err := id.in.file.MigrateID(f, id.kid); err == nil {
			return true
		}
	}
	return false
}

// deliverInOrder delivers an event of the identifier, after the answer of the command that is under
// way.
func (id *driverID) deliverInOrder(ev *uabi.EventResp) {
	if id.away != nil {
		late := *ev
		id.late = append(id.late, func() { id.deliverInOrder(&late) })
		return
	}
	in := id.in
	if ev.Event >= uint32(states.NumKernelKinds) {
		return // a newer kernel's
	}
	if ev.Event == uabi.EventConnectResponse && id.qp != nil { // else its owner does it
		id.handleResponse(*ev)
		return
	}
	in.decodeEvent(id.datagram, ev)
	id.applyEvent(&in.event)
	in.up.Event(id.h, &in.event)
}

// applyEvent does what librdmacm does before it delivers an event, and may change the event's kind.
func (id *driverID) applyEvent(ev *cmid.DriverEvent) {
	var err error
	if ev.Kind == states.KindRejected && id.phase == connected {
		// InfiniBand: the peer has gone before it got the RTU. Nothing else reports the end.
		ev.Kind, ev.Status, ev.PrivateData = states.KindDisconnected, -int32(unix.ECONNRESET), nil
	}
	switch ev.Kind {
	case states.KindAddrResolved:
		if err = id.queryAddrs(); err != nil {
			ev.Kind = states.KindAddrError
		}
	case states.KindAddrError:
		_ = id.queryAddrs() // resolving has bound it
		if ev.Status == -int32(unix.ENODEV) {
			ev.Err = noDeviceTo(id.dst)
		}
	case states.KindEstablished:
		id.phase = connected
		id.limitReads(ev.Param.ResponderResources)
	case states.KindRejected, states.KindUnreachable, states.KindConnectError:
		id.noteFailed(ev.Kind)
	case states.KindDisconnected:
		id.left = true
		id.noteDisconnected()
		if id.isIWARP() {
			id.flushQP() // the connection is over, and siw forgets outstanding requests
		}
	case states.KindDeviceRemoval:
		id.phase = removed
		if id.dev != nil {
			id.in.removeDevice(id.dev)
		}
	default:
	}
	if err != nil {
		ev.Err, ev.Status = err, -int32(errnoOf(err))
	}
}

// noteFailed notes that a connection attempt has failed. The kernel also reports Unreachable, in
// every state, when a neighbour has changed, which ends nothing. The two cannot be distinguished.
// So after an Unreachable the kernel may still have something to wait for.
func (id *driverID) noteFailed(kind states.Kind) {
	if id.phase != half {
		return
	}
	if kind != states.KindUnreachable {
		id.phase = unconnected
	}
	id.flushQP()
}
