//go:build amd64 || arm64

package native

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
)

// ackAfter is how many events of a completion queue are acknowledged at once. Each time the library
// takes a lock.
const ackAfter = 64

// NextCompletion reads an event of the completion channel. The library must do that: some drivers
// count the events.
func (a *adapter) NextCompletion() (uint64, error) {
	cq, cqAt := scratch[uintptr](a.page, 0)
	event, eventAt := scratch[uint64](a.page, 8)
	if err := a.next(a.getCQEvent, a.channel, cqAt, eventAt); err != nil {
		return 0, err
	}
	addr, name := *cq, *event
	if q := a.queues[hca.Handle(addr)]; q != nil {
		q.drained = false
	}
	if o := a.find(cqObject, addr); o != nil {
		if o.unacked++; o.unacked >= ackAfter {
			a.acknowledge(a.page, o)
		}
	}
	return name, nil
}

// NextEvent reads an asynchronous event. It is acknowledged at once, because an object is not
// destroyed before.
func (a *adapter) NextEvent() (hca.Event, error) {
	ev, at := scratch[asyncEvent](a.page, 0)
	if err := a.next(a.getAsyncEvent, a.ctx, at); err != nil {
		return hca.Event{}, err
	}
	e := hca.Event{Type: ev.EventType}
	switch t := ev.EventType; {
	case t >= eventQPFirst && t <= eventQPLast, t == eventQPLastWQE:
		e.Object = peek[uint64](uintptr(ev.Element), qpContext)
	case t == eventSRQError, t == eventSRQLimit:
		e.Object = peek[uint64](uintptr(ev.Element), srqContext)
	case t == eventCQError:
		e.Object = peek[uint64](uintptr(ev.Element), cqContext)
	}
	a.page.invoke(a.ackAsyncEvent.addr, at)
	return e, nil
}

// next calls a function that reads an event. The error is a bare errno.
func (a *adapter) next(v verb, args ...uintptr) error {
	for {
		ret, errno := a.page.invoke(v.addr, args...)
		switch {
		case int32(ret) == 0:
			return nil
		case errno == 0:
			return unix.EIO
		case errno != unix.EINTR:
			return errno
		}
	}
}
