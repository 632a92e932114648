package iwarp

import (
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Run ends a turn: it writes output, then notifies of completions and delivers events.
func (in *instance) Run(int) bool {
	in.deferred = false
	if in.closed {
		return false
	}
	now := in.loop.Now()
	list := in.dirty
	in.dirty = in.spare[:0]
	in.spare = nil
	for i, c := range list {
		list[i] = nil
		c.dirty = false
		if c.isRunning() {
			c.writeOutput(now)
			c.applyCoreState(now)
		}
	}
	in.spare = list[:0]
	in.deliverReports()
	return false
}

// deliverReports notifies of completions, asks for receives and delivers events. Completions come
// first: what their owner consumes it can post as receives, and it gets an identifier's messages
// before its end.
func (in *instance) deliverReports() {
	if in.reporting {
		return
	}
	in.reporting = true
	defer in.endDelivery()
	for !in.closed {
		if s := popLast(&in.low); s != nil {
			if !s.gone {
				s.attr.OnLimit()
			}
			continue
		}
		if n := len(in.notify); n > 0 {
			cq := in.notify[0]
			copy(in.notify, in.notify[1:])
			in.notify[n-1] = nil
			in.notify = in.notify[:n-1]
			cq.callNotify()
			continue
		}
		if s := popLast(&in.serving); s != nil {
			in.serveWaiting(s)
			continue
		}
		if in.first == len(in.events) {
			in.events, in.first = in.events[:0], 0
			return
		}
		ev := in.events[in.first]
		in.events[in.first] = event{}
		in.first++
		in.deliverEvent(&ev)
	}
}

// popLast removes and returns the last element of a list; nil if there is none.
func popLast(list *[]*sharedQueue) *sharedQueue {
	n := len(*list)
	if n == 0 {
		return nil
	}
	s := (*list)[n-1]
	(*list)[n-1] = nil
	*list = (*list)[:n-1]
	return s
}

// endDelivery ends deliverReports, even if a panic in the application has interrupted it.
func (in *instance) endDelivery() {
	in.reporting = false
	if len(in.notify) > 0 || len(in.low) > 0 || len(in.serving) > 0 || in.first < len(in.events) {
		in.deferRun()
	}
}

// deliverEvent delivers one event.
func (in *instance) deliverEvent(ev *event) {
	if ev.id.dead {
		if ev.Child != nil {
			_ = ev.Child.Do(&cmid.DestroyID{}) // the request could not be answered any longer
		}
		return
	}
	if c := ev.id.conn; c != nil && c.in != in {
		c.in.deliverReports() // an identifier that was migrated has its completions on that loop
	}
	if c := ev.id.conn; ev.Kind == states.KindEstablished && c != nil {
		defer c.endSetup() // also when the application panics
	}
	in.delivering = ev.DriverEvent
	in.up.Event(ev.id.h, &in.delivering)
	in.delivering = cmid.DriverEvent{}
}
