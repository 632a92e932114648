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

// Ready reads events and tells the queues' owners. There is at most one per armed queue.
func (h compEvents) Ready(eventloop.Events) {
	d := h.d
	for range eventsPerTurn {
		if err := readEvent(d.comp, &d.compEvent); err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				d.fail(err)
			}
			return
		}
		d.completed(d.compEvent)
		if d.closed {
			return
		}
	}
}

// Glance looks for completions without a system call. The kernel's event of the same completion comes later and finds nothing.
func (h compEvents) Glance() (worked bool) {
	for q := range h.d.cqs {
		worked = q.tell() || worked
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
	d := h.d
	for range eventsPerTurn {
		if err := readEvent(d.async, &d.asyncEvent); err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				d.fail(err)
			}
			return
		}
		d.happened(d.asyncEvent)
		if d.closed {
			return
		}
	}
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
			x.told(verbs.QPCommEst)
		case eventQPFatal, eventQPReqErr, eventQPAccess:
			x.end()
			x.told(verbs.QPFatal)
		case eventLastWQE:
			x.told(verbs.QPLastWQE)
		}
	case *sharedQueue:
		if ev.EventType == eventSRQLimit {
			x.reached()
		}
	}
}
