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
func (t *Timeouts) phase(cmd Command) time.Duration {
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
func (t *commandTable) rearm() {
	if t.ending() {
		return
	}
	var first time.Time
	if t.asked != nil {
		first = t.asked.due
	}
	sooner := func(due time.Time) {
		if !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	for _, p := range t.id.Pending() {
		sooner(p.Due)
	}
	for _, c := range t.life.closers {
		sooner(c.due)
	}
	switch {
	case first.IsZero() && t.timer != nil:
		t.timer.Stop()
		if len(t.id.Pending()) == 0 { // else the next step of a Dial needs it
			t.timer = nil // an idle connection has no timer
		}
	case first.IsZero():
	default:
		if t.timer == nil {
			t.timer = t.l.el.NewTimer(func() { t.box.Deliver(&tick{}) })
		}
		t.timer.Reset(first.Sub(t.l.el.Now()))
	}
}
