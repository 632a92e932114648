//go:build amd64 || arm64

package native

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
)

// ackAfter is how many events of a completion queue are acknowledged together. Each time the
// library takes a lock.
const ackAfter = 64

// NextCompletion reads an event of the completion channel. The library must do that: some drivers
// count the events. The queue with the previous event is polled in the same crossing, as most loops
// have one queue.
func (a *adapter) NextCompletion() (uint64, error) {
	p, guess := a.page, a.recent
	cq, cqAt := scratchVar[uintptr](p, 0)
	event, eventAt := scratchVar[uint64](p, 8)
	var errno unix.Errno
	for {
		p.calls[0] = cCall{fn: a.getCQEvent.addr, args: [6]uintptr{a.channel, cqAt, eventAt}}
		n := 1
		if guess != nil && guess.next == guess.n && !guess.foreseen {
			p.calls[1] = guess.pollCall()
			n = 2
		}
		p.makeCalls(n)
		errno = eventErrno(p.calls[0].ret, unix.Errno(p.errno))
		if n == 2 && !guess.handlePolled(p.calls[1].ret) {
			guess.seen = 1
		}
		if errno != unix.EINTR {
			break
		}
	}
	if errno != 0 {
		return 0, errno
	}
	addr, name := *cq, *event
	if q := a.queues[hca.Handle(addr)]; q != nil {
		if a.recent, q.ahead = q, false; q != guess {
			q.seen = 0
		}
	}
	if o := a.findObject(cqObject, addr); o != nil {
		if o.unacked++; o.unacked >= ackAfter {
			a.ackEvents(p, o)
		}
	}
	return name, nil
}

// NextEvent reads an asynchronous event. It is acknowledged immediately, because an object is not
// destroyed before.
func (a *adapter) NextEvent() (hca.Event, error) {
	ev, at := scratchVar[hca.AsyncEvent](a.page, 0)
	if err := a.readEvent(a.getAsyncEvent, a.ctx, at); err != nil {
		return hca.Event{}, err
	}
	e := hca.Event{Type: ev.EventType}
	switch t := ev.EventType; {
	case t >= hca.EventQPFatal && t <= hca.EventPathMigErr, t == hca.EventLastWQE:
		e.Object = peek[uint64](uintptr(ev.Element), qpContext)
	case t == hca.EventSRQError, t == hca.EventSRQLimit:
		e.Object = peek[uint64](uintptr(ev.Element), srqContext)
	case t >= hca.EventPortActive && t <= hca.EventSMChange, t == hca.EventReregister, t == hca.EventGIDChange:
		e.Object = uint64(uint32(ev.Element)) // a number, in the same union
	case t == hca.EventCQError:
		e.Object = peek[uint64](uintptr(ev.Element), cqContext)
	}
	a.page.invoke(a.ackAsyncEvent.addr, at)
	return e, nil
}

// readEvent calls a function that reads an event. The error is a bare errno.
func (a *adapter) readEvent(v verb, args ...uintptr) error {
	for {
		switch errno := eventErrno(a.page.invoke(v.addr, args...)); errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

// eventErrno returns why a function that reads an event has read none, or 0.
func eventErrno(ret uintptr, errno unix.Errno) unix.Errno {
	switch {
	case int32(ret) == 0:
		return 0
	case errno == 0:
		return unix.EIO
	}
	return errno
}
