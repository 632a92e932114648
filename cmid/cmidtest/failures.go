package cmidtest

import (
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// RemoveDevice removes every device of that name from its host, as if the adapter were pulled out.
// Its identifiers get DeviceRemoval, and their peers get Disconnected. AddDevice may add it again.
func (f *Fabric) RemoveDevice(name string) {
	f.mu.Lock()
	var affected []*instance
	for _, h := range f.order {
		if d := h.deviceLocked(name); d != nil {
			d.removeLocked()
			affected = append(affected, h.instances...)
		}
	}
	f.mu.Unlock()
	for _, in := range affected {
		in.runLater(in.dropRemoved)
	}
}

// Disconnect breaks the connection of an identifier. Both ends get Disconnected, on iWARP with
// ECONNRESET. With Config.Embedded the messages that wait for receives come first.
func (f *Fabric) Disconnect(h cmid.Handle) {
	f.onDriverID(h, (*driverID).breakConnection)
}

// FailNext makes the next work request with that opcode on an identifier's queue pair fail. For a
// Send, a Write, a Read or an atomic operation that is the next one posted. For verbs.Recv it is
// the receive of the next message. The work request completes with st. The queue pair is then in
// its error state, and the work requests behind it are flushed. On iWARP the connection ends as
// well.
func (f *Fabric) FailNext(h cmid.Handle, op verbs.Opcode, st verbs.Status) {
	f.onQP(h, func(q *qp) { q.doom, q.doomed, q.doomStatus = op, true, st })
}

// FailQP breaks the queue pair of an identifier, as IBV_EVENT_QP_FATAL reports it. Outstanding work
// requests are flushed, and QPFailed follows. On iWARP the connection ends as well.
func (f *Fabric) FailQP(h cmid.Handle) {
	f.onQP(h, func(q *qp) {
		q.fail()
		q.in.deliverEvent(q.id, cmid.DriverEvent{Kind: states.KindQPFailed})
		if q.in.f.iwarp {
			q.terminate("the queue pair has failed")
		}
	})
}

// onQP calls fn with an identifier's queue pair, on its loop.
func (f *Fabric) onQP(h cmid.Handle, fn func(q *qp)) {
	f.onDriverID(h, func(id *driverID) {
		if id.qp != nil && !id.qp.over {
			fn(id.qp)
		}
	})
}

// onDriverID calls fn with an identifier, on its loop.
func (f *Fabric) onDriverID(h cmid.Handle, fn func(id *driverID)) {
	f.mu.Lock()
	var all []*instance
	for _, host := range f.order {
		all = append(all, host.instances...)
	}
	f.mu.Unlock()
	for _, in := range all {
		in.runLater(func() {
			if id := in.ids[h]; id != nil {
				fn(id)
			}
		})
	}
}
