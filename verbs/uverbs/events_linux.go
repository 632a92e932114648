package uverbs

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// Asynchronous events (enum ib_event_type).
const (
	eventQPFatal    = 1
	eventQPReqErr   = 2
	eventQPAccess   = 3
	eventCommEst    = 4
	eventDeviceFail = 8
	eventSRQLimit   = 15
	eventLastWQE    = 16
	eventGIDChange  = 18
)

// compEvents hears that an armed queue has a completion.
type compEvents struct{ d *device }

// eventsPerTurn bounds how many events are read at once.
const eventsPerTurn = 64

// readEvents reads what there is of events on fd, which is -1 once it is closed, into ev.
func readEvents[T any](d *device, fd *int, ev *T, happened func(T)) {
	for range eventsPerTurn {
		if err := readEvent(*fd, ev); err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				d.fail(err)
			}
			return
		}
		happened(*ev)
		if d.closed {
			return
		}
	}
}

// Ready reads events and notifies the queues' owners. There is at most one per armed queue.
func (h compEvents) Ready(eventloop.Events) {
	readEvents(h.d, &h.d.comp, &h.d.compEvent, h.d.completed)
}

// Glance looks for completions without a system call. The kernel's event of the same completion
// comes later and finds nothing.
func (h compEvents) Glance() (worked bool) {
	for q := range h.d.cqs {
		worked = q.notifyOwner() || worked
	}
	return worked
}

// completed is an event of the completion channel.
func (d *device) completed(ev compEventDesc) {
	p, ok := d.handles[ev.CQHandle].(*cqPart)
	if !ok {
		return
	}
	p.armed, p.quietly = false, false
	p.q.heard()
}

// asyncEvents hears what happens to the device and its queues.
type asyncEvents struct{ d *device }

// Ready reads events.
func (h asyncEvents) Ready(eventloop.Events) {
	readEvents(h.d, &h.d.async, &h.d.asyncEvent, h.d.happened)
}

// happened is an asynchronous event.
func (d *device) happened(ev asyncEventDesc) {
	switch ev.EventType {
	case eventDeviceFail:
		d.fail(unix.ENODEV)
		return
	case eventGIDChange: // its element is a port's number
		clear(d.gids)
		return
	}
	switch x := d.handles[ev.Element].(type) {
	case *queuePair:
		switch ev.EventType {
		case eventCommEst:
			x.notify(verbs.QPCommEst)
		case eventQPFatal, eventQPReqErr, eventQPAccess:
			x.end()
			x.notify(verbs.QPFatal)
		case eventLastWQE:
			x.notify(verbs.QPLastWQE)
		}
	case *sharedQueue:
		if ev.EventType == eventSRQLimit {
			x.reached()
		}
	}
}
