package rpc

import (
	"slices"
	"time"
)

// recordResult records a call over l: the server's code, or that of a call not answered in time. 0:
// it was answered. If that call began after the server was ejected, the ejection ends. l.out.mu is
// locked, and Client.mu may be locked within it, never the other way around.
func (e *endpoint) recordResult(l *link, began time.Time, code Code) {
	if e.c.pool.Eject < 0 {
		return
	}
	switch code {
	case CodeDeadline, CodeInternal:
		if l.failures++; l.failures >= e.c.pool.Eject {
			e.ejectFor(l, e.c.pool.EjectFor, true)
		}
	case CodeOverloaded:
		e.ejectFor(l, overloadedFor, false)
	case CodeCanceled, CodeUnavailable:
		// the first says nothing about the server, the second that it is gone
	default:
		l.failures = 0
		if at := e.ejectedAt.Load(); at != 0 && began.UnixNano() > at {
			e.answered(l)
		}
	}
}

// answered ends the server's ejection, and forgets earlier ones: l has carried an answer.
func (e *endpoint) answered(l *link) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	if e.link != l {
		return
	}
	l.latency.forgetPast()
	e.endEjectionLocked(time.Now())
	e.forgetEjectionsLocked()
}

// forgetEjectionsLocked makes the next ejection the first one.
func (e *endpoint) forgetEjectionsLocked() {
	e.ejections, e.ejectedUntil = 0, time.Time{}
	e.ejectedAt.Store(0)
}

// endEjectionLocked ends an ejection early.
func (e *endpoint) endEjectionLocked(now time.Time) {
	e.ejectedUntil = time.Time{}
	if e.slowSince.After(now) {
		e.slowSince = now
	}
}

// ejectFor lets the server of l get no calls for a while, which grows with the ejections in a row
// if it grows.
func (e *endpoint) ejectFor(l *link, d time.Duration, grows bool) {
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if e.link != l || now.Before(e.ejectedUntil) || len(c.ejectedLocked(now)) >= c.connected/2 {
		return
	}
	if grows {
		l.failures = 0
		e.ejectedAt.Store(now.UnixNano())
		e.ejections = min(e.ejections+1, 10)
		d *= time.Duration(e.ejections)
		e.slowSince = now.Add(d)
	}
	e.ejectedUntil = now.Add(d)
	if e.ejectedUntil.After(c.ejecting) {
		c.ejecting = e.ejectedUntil
	}
}

// ejectedLocked returns the servers that are ejected, of those that serve.
func (c *Client) ejectedLocked(now time.Time) (ejected []*endpoint) {
	if !now.Before(c.ejecting) {
		return nil
	}
	for _, e := range c.endpoints {
		if e.serves && now.Before(e.ejectedUntil) {
			ejected = append(ejected, e)
		}
	}
	return ejected
}

// boundEjectionsLocked ends ejections, beginning with those that end soonest, until at most half of
// the servers that serve are ejected.
func (c *Client) boundEjectionsLocked() {
	now := time.Now()
	ejected := c.ejectedLocked(now)
	slices.SortStableFunc(ejected, func(a, b *endpoint) int { return a.ejectedUntil.Compare(b.ejectedUntil) })
	for _, e := range ejected[:max(len(ejected)-c.connected/2, 0)] {
		e.endEjectionLocked(now)
	}
}
