package rpc

import "time"

// judge takes the result of a call over l that began at a time: the server's code, or that of a
// call that it has not answered in time. 0: it was answered. If that call began after the server
// was ejected, the ejection ends. out.mu is locked.
func (e *endpoint) judge(l *link, began time.Time, code Code) {
	if e.c.pool.Eject < 0 {
		return
	}
	switch code {
	case CodeDeadline, CodeInternal:
		if l.failures++; l.failures >= e.c.pool.Eject {
			e.eject(l, e.c.pool.EjectFor, true)
		}
	case CodeOverloaded:
		e.eject(l, overloadedFor, false)
	case CodeCanceled, CodeUnavailable:
		// the first says nothing about the server, the second that it is gone
	default:
		l.failures = 0
		if !l.ejected.IsZero() && began.After(l.ejected) {
			l.ejected = time.Time{}
			l.latency.forget()
			e.c.mu.Lock()
			e.ejections, e.ejectedUntil = 0, time.Time{}
			e.c.mu.Unlock()
		}
	}
}

// eject lets the server of l get no calls for a while, which grows with the ejections in a row if
// it grows.
func (e *endpoint) eject(l *link, d time.Duration, grows bool) {
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
