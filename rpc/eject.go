package rpc

import "time"

// recordResult records a call over l: the server's code, or that of a call not answered in time. 0:
// it was answered. If that call began after the server was ejected, the ejection ends. out.mu is
// locked.
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
		if !l.ejected.IsZero() && began.After(l.ejected) {
			l.ejected = time.Time{}
			l.latency.forgetPast()
			e.c.mu.Lock()
			e.ejections, e.ejectedUntil = 0, time.Time{}
			e.c.mu.Unlock()
		}
	}
}

// ejectFor lets the server of l get no calls for a while, which grows with the ejections in a row
// if it grows.
func (e *endpoint) ejectFor(l *link, d time.Duration, grows bool) {
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now, ejected := time.Now(), 0
	for _, other := range c.endpoints {
		if other.serves && now.Before(other.ejectedUntil) {
			ejected++
		}
	}
	if e.link != l || now.Before(e.ejectedUntil) || 2*(ejected+1) > c.connected {
		return
	}
	if grows {
		l.failures, l.ejected = 0, now
		e.ejections = min(e.ejections+1, 10)
		d *= time.Duration(e.ejections)
		e.slowSince = now.Add(d)
	}
	e.ejectedUntil = now.Add(d)
}
