package datapath

import (
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
)

// A credit update is usually sent when half of the window has been consumed, so that many messages
// share one. An owner that retains more than half never consumes that much, and its peer would
// stall until some other message carries the count. So a peer that has used up its credits is sent
// the free ones:
//
//   - in the next turn, if no message waits for the owner, because the owner may retain those that
//     it holds for a long time,
//   - after reliefAfter, if some wait: an owner that is only slow soon has consumed half of them,
//     and one update is cheaper than one for each.
//
// The same applies to a peer that needs no credits (raw, or foreign): after a pause it resumes when
// half of its window is free, or else in this way.

// reliefAfter is the longest time that a peer waits for credits that are free.
const reliefAfter = time.Millisecond

// relief is the timer of a peer that waits for credits. The zero value is ready for use, and costs
// a timer once the peer has to wait.
type relief struct {
	timer *eventloop.Timer // nil: the peer has not waited yet
	due   reliefDue
}

// reliefDue is the state of relief's timer.
type reliefDue uint8

const (
	reliefStopped reliefDue = iota
	reliefDelayed           // fires within reliefAfter
	reliefSoon              // fires in the next turn
)

// reliefCheck schedules relief if the peer waits for credits that are free, or makes it come sooner
// if the owner has become idle. The call itself sends nothing: more messages may be about to be
// consumed.
func (in *intake) reliefCheck() {
	if !in.reliefNeeded() {
		return
	}
	r := &in.relief
	if r.timer == nil {
		r.timer = in.c.l.el.NewTimer(func() {
			r.due = reliefStopped
			in.reliefSend()
		})
	}
	switch {
	case r.due == reliefSoon:
	case (in.Arrivals == nil || in.Arrivals.Waiting.Len() == 0) && in.c.identifier.Idle():
		r.due = reliefSoon
		r.timer.Reset(0)
	case r.due == reliefStopped:
		r.due = reliefDelayed
		r.timer.Reset(reliefAfter)
	}
}

// reliefNeeded reports whether the peer waits while the owner holds less than the window.
func (in *intake) reliefNeeded() bool {
	if in.c.terms.Mode == ModeMessages {
		return in.c.Session.Stands() && in.c.mayPost()
	}
	return in.paused && in.c.l.Shares.mayReceive(in.c)
}

func (in *intake) reliefSend() {
	switch needed := in.reliefNeeded(); {
	case in.c.terms.Mode != ModeMessages && needed:
		in.c.l.Shares.resumeConn(in.c)
	case in.c.terms.Mode != ModeMessages:
		in.c.l.Shares.resumeOrWait(in.c) // memory may be short by now
	case needed && in.c.Out.Flight.hasRoom():
		in.c.Out.sendControl(wire.TypeCredit, 0) // without room, sendUpdates schedules it again
	}
}
