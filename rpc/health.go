package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/health"
)

var watchHealth = newMethod(health.Watch, serverSends, mustCodec[health.Request](nil), mustCodec[health.Status](nil))

// countsAsStream reports whether a client's streams of m count in its MaxStreams: not those that
// watch the health of a pool's servers.
func (m *method) countsAsStream() bool { return m.stream && m != watchHealth }

// healthTimeout is how long calls wait for the first report of a server: as long as a dial may take
// (actor.Timeouts.Connect). After that they fail, if no server serves, like those that find none
// connected.
const healthTimeout = 10 * time.Second

// watchLocked lets calls use a new connection when its server serves: immediately if the health of
// servers is not watched. Until the first report of a connection that replaces another one, the
// last report of that counts.
func (e *endpoint) watchLocked(l *link) {
	c := e.c
	service := c.cfg.Service.Health
	if c.pool == nil || service == nil {
		e.serveLocked()
		return
	}
	silent := fmt.Errorf("%s: %w: %q", e.addr, errNotReported, *service)
	if !e.serves {
		c.why = silent
	}
	ctx, stop := context.WithCancel(context.Background())
	late := c.rt.Scheduler().AfterFunc(healthTimeout, func() { e.unreported(l, silent) })
	l.unwatch = func() {
		late.Stop()
		stop()
	}
	c.rt.Scheduler().Go(func() { e.watch(ctx, l, *service) })
}

// unreported makes calls no longer wait for the first report of a server.
func (e *endpoint) unreported(l *link, why error) {
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.link != l || e.serves || errors.Is(e.why, errNotServing) {
		return
	}
	e.why, c.why = why, why
	c.changedLocked()
}

// serveLocked lets calls use the endpoint's connection.
func (e *endpoint) serveLocked() {
	if !e.serves {
		e.serves = true
		if now := time.Now(); !now.Before(e.ejectedUntil) || now.After(e.slowSince) {
			e.slowSince = now // otherwise it starts when its ejection ends
		}
		e.c.connected++
		e.c.boundEjectionsLocked()
		e.c.changedLocked()
	}
}

// unserveLocked lets no calls use the endpoint's connection.
func (e *endpoint) unserveLocked() {
	if e.serves {
		e.serves = false
		e.c.connected--
		e.c.boundEjectionsLocked()
	}
}

// detachLocked takes the endpoint's connection away from it: it carries no new calls.
func (e *endpoint) detachLocked() {
	e.unserveLocked()
	e.link.unwatch()
	e.link = nil
}

// watch watches the health of a service over a connection until ctx ends. A server that refuses to
// report it, or has no health service, serves.
func (e *endpoint) watch(ctx context.Context, l *link, service string) {
	for failed := 0; ctx.Err() == nil; failed++ {
		reported := false
		err := l.followHealth(ctx, service, func(serving bool) {
			reported = true
			e.report(l, service, serving)
		})
		if reported {
			failed = 0
		} else if failed == 0 {
			e.report(l, service, true)
		}
		if errors.Is(err, ErrUnknownMethod) {
			return
		}
		again := time.NewTimer(e.c.pauseAfter(failed))
		select {
		case <-again.C:
		case <-ctx.Done():
		}
		e.c.rt.Scheduler().Resume()
		again.Stop()
	}
}

// report records whether the server of a connection serves.
func (e *endpoint) report(l *link, service string, serving bool) {
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	known := errors.Is(e.why, errNotServing)
	switch {
	case e.link != l:
	case serving:
		if known || errors.Is(e.why, errNotReported) {
			e.why = nil
		}
		e.serveLocked()
	case known && !e.serves: // a server that repeats itself wakes no calls that wait
	default:
		e.unserveLocked()
		e.why = fmt.Errorf("%s: %w: %q", e.addr, errNotServing, service)
		c.why = e.why
		c.changedLocked()
	}
}

// Why a server that is connected gets no calls.
var (
	errNotServing  = errors.New("the server's health service reports that it does not serve")
	errNotReported = errors.New("the server's health service has not reported yet whether it serves")
)

// followHealth calls report with each state of a service that the server reports, until the stream
// or ctx ends.
func (l *link) followHealth(ctx context.Context, service string, report func(serving bool)) error {
	s := l.server.c.newStream(watchHealth)
	body, _ := (&health.Request{Service: service}).AppendBinary(nil)
	if err := l.queueRequest(&s.call, nil, body); err != nil {
		return err
	}
	s.l = l
	s.watchContext(ctx)
	in := Receiver[health.Status]{r: &s.inbound}
	defer in.Close()
	for {
		now, err := in.Receive()
		if err != nil {
			return err
		}
		report(*now == health.Serving)
	}
}
