// Package rpchealth lets clients and probes ask a server whether it serves, with gRPC's health
// service (grpc.health.v1.Health): its methods have the same names and bytes, so rpchttp serves
// them to gRPC's and Connect's clients. rdmactor probe uses it, and pools whose
// rpc.ServiceConfig.Health is set.
//
//	health := rpchealth.Register(server)
//	health.Set("shop.Orders", false) // while its database is away
package rpchealth

import (
	"context"
	"iter"
	"sync"

	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/internal/health"
)

var (
	check = rpc.NewMethod[health.Request, health.Status](health.Check, rpc.MethodConfig{Idempotent: true})
	watch = rpc.NewStream[health.Request, health.Status](health.Watch, rpc.MethodConfig{Idempotent: true})
)

// ErrUnknownService is the error of Check for a service that the server has not set. gRPC has
// "not_found" for it, which rpchttp.Config.Code can return.
var ErrUnknownService = rpc.RegisterCode(CodeUnknownService, "the server has no health of this service")

// CodeUnknownService is ErrUnknownService's code.
const CodeUnknownService rpc.Code = 65_000

// Health has the state of a server and its services. Its methods are for any goroutine.
type Health struct {
	draining <-chan struct{}

	mu       sync.Mutex
	services map[string]bool
	changed  chan struct{} // closed at a change
}

// Register adds the service to a server, before Listen. The server as a whole serves until it is
// shut down or closed, unless Set says otherwise.
func Register(s *rpc.Server) *Health {
	h := &Health{draining: s.Draining(), services: map[string]bool{"": true}, changed: make(chan struct{})}
	rpc.Handle(s, check, func(_ context.Context, q *health.Request) (*health.Status, error) {
		now, _ := h.statusOf(q.Service)
		if now == health.ServiceUnknown {
			return nil, ErrUnknownService
		}
		return &now, nil
	}, rpc.HandlerConfig{OnLoop: true}) // so that it needs no place of a busy server
	rpc.HandleStream(s, watch, h.watchService)
	health.RegisterFile()
	return h
}

// Set sets whether a service serves; "" is the whole server.
func (h *Health) Set(service string, serving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.services[service] = serving
	close(h.changed)
	h.changed = make(chan struct{})
}

// statusOf returns the state of a service, and a channel that is closed when it may have changed.
func (h *Health) statusOf(service string) (now health.Status, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	serving, known := h.services[service]
	select {
	case <-h.draining:
		serving = false
	default:
	}
	switch {
	case !known:
		now = health.ServiceUnknown
	case serving:
		now = health.Serving
	default:
		now = health.NotServing
	}
	return now, h.changed
}

// watchService sends the state of a service, and the latest one after changes. At the end of the
// server it ends.
func (h *Health) watchService(ctx context.Context, q *health.Request, out *rpc.Sender[health.Status]) error {
	last := health.Unset
	for {
		now, changed := h.statusOf(q.Service)
		if now != last {
			if err := out.Send(&now); err != nil {
				return err
			}
			last = now
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.draining:
			if now, _ = h.statusOf(q.Service); now != last {
				if err := out.Send(&now); err != nil {
					return err
				}
			}
			return rpc.ErrDraining
		case <-changed:
		}
	}
}

// Check asks whether a service serves; "" is the whole server. Errors are those of the call:
// ErrUnknownService, or rpc.ErrUnknownMethod of a server without Register.
func Check(ctx context.Context, c *rpc.Client, service string) (serving bool, err error) {
	s, err := rpc.Call(ctx, c, check, &health.Request{Service: service})
	return err == nil && *s == health.Serving, err
}

// Watch is Check as a loop over a service's states: the present one first, and then the latest
// one after changes, so a short one may be left out. A service that the server does not know does
// not serve. The error comes last.
func Watch(ctx context.Context, c *rpc.Client, service string) iter.Seq2[bool, error] {
	return func(yield func(bool, error) bool) {
		for s, err := range rpc.Items(ctx, c, watch, &health.Request{Service: service}) {
			if !yield(err == nil && *s == health.Serving, err) {
				return
			}
		}
	}
}
