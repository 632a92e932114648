package inspect

import (
	"net/http"
	"sync"
	"time"
)

// An attacker who guesses tokens may send any number of requests, so few of them are logged.

// errDenied is the answer to an action without the token.
var errDenied = &failure{http.StatusForbidden, "not allowed: the token is missing or wrong; it belongs in the header Authorization: Bearer TOKEN"}

// denialsEvery is the least time between two logged requests without the token.
const denialsEvery = time.Second

// denials limits the logging of requests without the token. Any goroutine.
type denials struct {
	mu       sync.Mutex
	next     time.Time
	unlogged int // since the last logged one
}

// shouldLog reports whether this request is to be logged, and how many before it were not.
func (d *denials) shouldLog(now time.Time) (unlogged int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Before(d.next) {
		d.unlogged++
		return 0, false
	}
	unlogged, d.unlogged, d.next = d.unlogged, 0, now.Add(denialsEvery)
	return unlogged, true
}

// logDenial logs a request without the token. It does not log the credential that was sent instead:
// it may be nearly right.
func (p *Page) logDenial(r *http.Request) {
	if unlogged, ok := p.denials.shouldLog(time.Now()); ok {
		p.rt.Logger().Warn("inspect: an action without the token was denied", "peer", r.RemoteAddr, "unlogged", unlogged)
	}
}
