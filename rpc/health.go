package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/health"
)

var watchHealth = newMethod(health.Watch, serverSends, mustCodec[health.Request](nil), mustCodec[health.Status](nil))

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
	ctx, stop := context.WithCancel(context.Background())
	l.unwatch = stop
	c.rt.Scheduler().Go(func() { e.watch(ctx, l, *service) })
}

// serveLocked lets calls use the endpoint's connection.
func (e *endpoint) serveLocked() {
	if !e.serves {
		e.serves, e.slowSince = true, time.Now()
		e.c.connected++
		if time.Now().Before(e.ejectedUntil) {
			e.c.boundEjectionsLocked()
		}
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

// watch watches the health of a service over a connection until ctx ends. A server that does not
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
		again := time.NewTimer(e.c.cfg.Backoff.Longest(failed))
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
		if known {
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

// errNotServing is why a server is not used that is connected.
var errNotServing = errors.New("the server's health service reports that it does not serve")

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
