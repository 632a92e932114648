package uverbs

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// deviceEvents are the events that are not a queue's.
var deviceEvents = map[uint32]verbs.DeviceEvent{
	hca.EventDeviceFail: verbs.DeviceFatal, hca.EventPortActive: verbs.PortActive, hca.EventPortError: verbs.PortError,
	hca.EventLIDChange: verbs.LIDChange, hca.EventPKeyChange: verbs.PKeyChange, hca.EventSMChange: verbs.SMChange,
	hca.EventReregister: verbs.ClientReregister, hca.EventGIDChange: verbs.GIDChange,
}

// compEvents hears that an armed queue has a completion.
type compEvents struct{ d *device }

// eventsPerTurn limits the events that are read in a row.
const eventsPerTurn = 64

// readEvents reads the available events.
func readEvents[T any](d *device, next func() (T, error), happened func(T), more func() bool) {
	for range eventsPerTurn {
		ev, err := next()
		if err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				d.handleGone(err)
			}
			return
		}
		happened(ev)
		if d.closed || d.back || !more() {
			return
		}
	}
}

// Ready reads events and notifies the queues' owners. There is at most one per armed queue, so that
// the last one needs no read that finds nothing.
func (h compEvents) Ready(eventloop.Events) {
	readEvents(h.d, h.d.hw.NextCompletion, h.d.handleCompletion, func() bool { return h.d.armed > 0 })
}

// Glance looks for completions without a system call. The kernel's event of the same completion
// comes later and finds nothing.
func (h compEvents) Glance() (worked bool) {
	for q := range h.d.cqs {
		worked = q.callNotify() || worked
	}
	return worked
}

// handleCompletion handles an event of the completion channel.
func (d *device) handleCompletion(queue uint64) {
	p, ok := d.handles[queue].(*cqPart)
	if !ok {
		return
	}
	p.setArmed(false, false)
	p.q.handleReport()
}

// setArmed records which completion the kernel will report next: any one, a solicited one, or none.
func (p *cqPart) setArmed(all, solicited bool) {
	if p.armed || p.quietly {
		p.q.dev.armed--
	}
	p.armed, p.quietly = all, solicited
	if all || solicited {
		p.q.dev.armed++
	}
}

// asyncEvents handles the asynchronous events of the device and its queues.
type asyncEvents struct{ d *device }

// Ready reads events.
func (h asyncEvents) Ready(eventloop.Events) {
	readEvents(h.d, h.d.hw.NextEvent, h.d.handleAsync, func() bool { return true })
}

// handleAsync handles an asynchronous event.
func (d *device) handleAsync(ev hca.Event) {
	if what, ok := deviceEvents[ev.Type]; ok {
		d.handleChange(what, int(ev.Object))
		return
	}
	switch x := d.handles[ev.Object].(type) {
	case *queuePair:
		switch ev.Type {
		case hca.EventCommEst:
			x.notifyEvent(verbs.QPCommEst)
		case hca.EventQPFatal, hca.EventQPReqErr, hca.EventQPAccess:
			x.markEnded()
			x.notifyEvent(verbs.QPFatal)
		case hca.EventLastWQE:
			x.notifyEvent(verbs.QPLastWQE)
		}
	case *sharedQueue:
		switch ev.Type {
		case hca.EventSRQLimit:
			x.limitReached()
		case hca.EventSRQError:
			d.failQueuePairs(func(q *queuePair) bool { return q.srq == x })
		}
	case *cqPart:
		if ev.Type == hca.EventCQError {
			d.failQueuePairs(func(q *queuePair) bool { return q.sendPart == x || q.recvPart == x })
		}
	}
}

// handleChange handles an event of the device or of a port. The function that it calls may close
// the device.
func (d *device) handleChange(what verbs.DeviceEvent, port int) {
	switch what {
	case verbs.GIDChange:
		clear(d.gids)
	case verbs.DeviceFatal:
		port = 0
	}
	if d.onEvent != nil {
		d.onEvent(what, port)
	}
	if what == verbs.DeviceFatal && !d.closed {
		d.handleGone(unix.ENODEV)
	}
}

// OnDeviceEvent sets the function that is called for the device's events.
func (d *device) OnDeviceEvent(f func(verbs.DeviceEvent, int)) { d.onEvent = f }

// failQueuePairs ends the queue pairs that use a queue that the device has given up. It will
// complete nothing more there.
func (d *device) failQueuePairs(uses func(*queuePair) bool) {
	for _, q := range d.qps {
		if uses(q) {
			q.flushOutstanding(q.firstUntaken())
			q.notifyEvent(verbs.QPFatal)
		}
	}
}
