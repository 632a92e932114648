package inspect

import (
	"net/http"
	"sync"
	"time"
)

// Somebody who guesses tokens may ask as often as he likes, so few of these requests are logged.

// denialsEvery is the least time between two requests without the token that are logged.
const denialsEvery = time.Second

// denials limits how often requests without the token are logged. Any goroutine.
type denials struct {
	mu       sync.Mutex
	next     time.Time
	unlogged int // since the last one that was logged
}

// log reports whether this request is to be logged, and how many before it were not.
func (d *denials) log(now time.Time) (unlogged int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Before(d.next) {
		d.unlogged++
		return 0, false
	}
	unlogged, d.unlogged, d.next = d.unlogged, 0, now.Add(denialsEvery)
	return unlogged, true
}

// denied logs that somebody has not had the token. What he has sent in its place is not logged: it
// may be nearly right.
func (p *Page) denied(r *http.Request) {
	if unlogged, ok := p.denials.log(time.Now()); ok {
		p.rt.Logger().Warn("inspect: somebody without the token was denied an action", "peer", r.RemoteAddr, "unlogged", unlogged)
	}
}
