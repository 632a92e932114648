package actor

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid"
)

// slack is how much longer than the device an identifier waits, if the device has a time-out. When
// the device reports its time-out, the command may be sent again. When slack runs out as well, the
// device is stuck, and the identifier is lost.
const slack = 250 * time.Millisecond

// phase returns how long a command may take.
func (it *ident) phase(cmd Command) time.Duration {
	t := &it.rt.cfg.Timeouts
	switch c := cmd.(type) {
	case *cmid.ResolveAddr:
		return positive(c.Timeout, t.Address) + slack
	case *cmid.ResolveRoute:
		return positive(c.Timeout, t.Route) + slack
	case *cmid.SetIBPath:
		return t.Route + slack
	case *cmid.Connect, *cmid.Accept, *cmid.Establish, *cmid.Disconnect, *cmid.GetAddrInfo, *cmid.ResolveIBService:
		return t.Connect
	}
	return t.Address + slack
}

// rearm sets the timer to the earliest deadline.
func (it *ident) rearm() {
	if it.ending() {
		return
	}
	var first time.Time
	if it.asked != nil {
		first = it.asked.due
	}
	sooner := func(due time.Time) {
		if !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	for _, p := range it.id.Pending() {
		sooner(p.Due)
	}
	for _, c := range it.life.closers {
		sooner(c.due)
	}
	switch {
	case first.IsZero() && it.timer != nil:
		it.timer.Stop()
		if len(it.id.Pending()) == 0 { // else the next step of a Dial needs it
			it.timer = nil // an idle connection has no timer
		}
	case first.IsZero():
	default:
		if it.timer == nil {
			it.timer = it.l.el.NewTimer(func() { it.box.Deliver(&tick{}) })
		}
		it.timer.Reset(first.Sub(it.l.el.Now()))
	}
}
