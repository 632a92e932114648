package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const eventStream = "text/event-stream"

// writeFor is how long a viewer's connection may take no bytes.
const writeFor = 5 * time.Second

// serveEvents sends a viewer the content of a view at each interval, until the viewer leaves, or
// does not read.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	shown, err := p.viewByName(query.Get("view"), query)
	if err != nil {
		p.writeError(w, err)
		return
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", eventStream)
		return // the answer would have no end
	}
	if p.closed.Err() != nil {
		p.writeError(w, &failure{http.StatusServiceUnavailable, "the page is closed"})
		return
	}
	defer p.viewers.Add(-1)
	if p.viewers.Add(1) > int64(p.cfg.Viewers) {
		w.Header().Set("Retry-After", "5")
		p.writeError(w, &failure{http.StatusServiceUnavailable, "too many viewers"})
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.closed, cancel)()
	to := &viewer{w: w, control: http.NewResponseController(w)}
	if err := to.control.SetWriteDeadline(time.Now().Add(writeFor)); err != nil {
		// a viewer that does not read could not be dropped
		p.writeError(w, &failure{http.StatusNotImplemented, "this server knows no deadlines for writing"})
		return
	}
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no") // otherwise proxies wait for more
	for {
		began := time.Now()
		var news []byte
		value, err := shown(ctx)
		if err == nil {
			news, err = p.bounds.makeAnswer(ctx, value, json.Marshal)
		}
		if ctx.Err() != nil || to.sendEvent(news, err) != nil {
			return
		}
		if isGone(err) {
			return
		}
		p.waitUntilNext(ctx, began)
	}
}

// waitUntilNext waits for the next reading, at the same time for all viewers, so that they share
// it.
func (p *Page) waitUntilNext(ctx context.Context, began time.Time) {
	next := time.NewTimer(p.untilNext(began))
	defer next.Stop()
	select {
	case <-next.C:
	case <-ctx.Done():
	}
}

func (p *Page) untilNext(began time.Time) time.Duration {
	p.snapshot.mu.Lock()
	taken := p.snapshot.latest.taken
	p.snapshot.mu.Unlock()
	if due := time.Until(taken.Add(p.cfg.Interval)); due > 0 {
		return due
	}
	return time.Until(began.Add(p.cfg.Interval)) // for a section, or if a read does not return
}

// viewer is a client that gets events.
type viewer struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// sendEvent writes an event: the view's content, which is JSON without a line break, or an error.
// Its id is the time, so that a browser can show the delay until it is on the screen.
func (v *viewer) sendEvent(news []byte, failed error) (err error) {
	name := "news"
	if failed != nil {
		name = "failure"
		if isGone(failed) {
			name = "gone"
		}
		if news, err = json.Marshal(failed.Error()); err != nil {
			return err
		}
	}
	event := make([]byte, 0, len(news)+64)
	event = fmt.Appendf(event, "id: %d\nevent: %s\ndata: ", time.Now().UnixMilli(), name)
	if err := writeInParts(v.w, append(append(event, news...), "\n\n"...)); err != nil {
		return err
	}
	return v.control.Flush()
}

// isGone reports whether the viewed object no longer exists. An overloaded page does not count.
func isGone(err error) bool {
	f := (*failure)(nil)
	return errors.As(err, &f) && f.status != http.StatusServiceUnavailable
}
