package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/states"
)

// host is an event channel, waited on as the C programs do: for one thing after the other.
type host struct {
	ch      *endpoint.Channel
	timeout time.Duration // of each wait
	out     io.Writer

	endpoints []*peer
	listener  *cmid.ID
	accept    func(e *peer) error // what the listener does with a request
}

func open(d cmid.Driver, timeout time.Duration, out io.Writer) (*host, error) {
	ch, err := endpoint.Open(d)
	return &host{ch: ch, timeout: timeout, out: out}, err
}

// close gives everything back, in the order that the C programs keep.
func (h *host) close() error {
	var errs []error
	for _, e := range h.endpoints {
		errs = append(errs, e.close())
	}
	if h.listener != nil {
		errs = append(errs, h.listener.Destroy())
	}
	return errors.Join(append(errs, h.ch.Close())...)
}

func (h *host) say(format string, args ...any) { fmt.Fprintf(h.out, format+"\n", args...) }

// lookup is the address that node and service name.
func (h *host) lookup(node, service string, ps cmid.PortSpace, passive bool) (cmid.Addr, error) {
	ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
	defer cancel()
	hints := &cmid.AddrInfo{PortSpace: ps}
	if passive {
		hints.Flags = cmid.RAIPassive
	}
	list, err := cmid.LookupAddrInfo(ctx, node, service, hints)
	switch {
	case err != nil:
		return cmid.Addr{}, err
	case passive:
		return list[0].Src, nil
	}
	return list[0].Dst, nil
}

// listen makes the listener; accept is called with each request's endpoint.
func (h *host) listen(bind, port string, ps cmid.PortSpace, accept func(e *peer) error) error {
	addr, err := h.lookup(bind, port, ps, true)
	if err != nil {
		return err
	}
	h.accept = accept
	if h.listener, err = endpoint.Listen(h.ch.Channel, ps, addr, 0); err != nil {
		return err
	}
	h.say("listening on %v", h.listener.LocalAddr())
	return nil
}

// endpoint makes the endpoint of an identifier.
func (h *host) endpoint(id *cmid.ID) *peer {
	e := &peer{Endpoint: endpoint.Endpoint{ID: id}, seen: make(map[states.Kind]cmid.Event)}
	id.Context = e
	h.endpoints = append(h.endpoints, e)
	return e
}

// resolve makes n endpoints and has dst and the route to it resolved for each.
func (h *host) resolve(n int, src, dst cmid.Addr, ps cmid.PortSpace) error {
	if err := h.resolveAddr(n, src, dst, ps); err != nil {
		return err
	}
	for _, e := range h.endpoints {
		if err := e.ID.ResolveRoute(h.timeout); err != nil {
			return err
		}
	}
	return h.await("resolving the route", states.KindRouteResolved)
}

func (h *host) resolveAddr(n int, src, dst cmid.Addr, ps cmid.PortSpace) error {
	for range n {
		id, err := h.ch.CreateID(ps)
		if err != nil {
			return err
		}
		if err := h.endpoint(id).ID.ResolveAddr(src, dst, h.timeout); err != nil {
			return err
		}
	}
	return h.await("resolving the address", states.KindAddrResolved)
}

// connect connects every endpoint.
func (h *host) connect(p *cmid.ConnParam) error {
	for _, e := range h.endpoints {
		if err := e.ID.Connect(nil, p); err != nil {
			return err
		}
	}
	return h.await("connecting", states.KindEstablished)
}

// goodbye waits for the ends of all connections, which are the peer's to begin.
func (h *host) goodbye() error { return h.await("awaiting the end", states.KindDisconnected) }

// disconnect ends every connection that the peer has not ended, and waits for the ends of all.
func (h *host) disconnect() error {
	for _, e := range h.endpoints {
		if err := e.disconnect(); err != nil {
			return err
		}
	}
	return h.goodbye()
}

// await waits until every endpoint has had an event of this kind.
func (h *host) await(what string, k states.Kind) error {
	return h.until(what, func() (bool, error) { return h.saw(k), nil })
}

// saw reports whether every endpoint has had an event of this kind.
func (h *host) saw(k states.Kind) bool {
	return !slices.ContainsFunc(h.endpoints, func(e *peer) bool { return e.seen[k] == nil })
}

// exchanged waits until every endpoint has that many messages received and sent.
func (h *host) exchanged(what string, received, sent int) error {
	err := h.until(what, func() (bool, error) {
		all := true
		for _, e := range h.endpoints {
			if err := e.poll(); err != nil {
				return false, err
			}
			if e.received >= received && e.sent >= sent {
				continue
			}
			all = false
			if e.seen[states.KindDisconnected] != nil {
				return false, errors.New("the peer has gone")
			}
		}
		return all, nil
	})
	if err != nil {
		for _, e := range h.endpoints {
			err = fmt.Errorf("%w; %d of %d messages received, %d of %d sent", err, e.received, received, e.sent, sent)
		}
	}
	return err
}

// until handles events until done says so. done looks, it posts nothing.
func (h *host) until(what string, done func() (bool, error)) error {
	end := time.Now().Add(h.timeout)
	for {
		err := h.ch.Drain(h.event)
		ok := false
		if err == nil {
			ok, err = done()
		}
		left := time.Until(end)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case ok:
			return nil
		case left <= 0:
			return fmt.Errorf("%s: not within %v", what, h.timeout)
		}
		if _, err := h.ch.Wait(left); err != nil {
			return err
		}
	}
}

func (h *host) event(id *cmid.ID, ev cmid.Event) error {
	if f, ok := ev.(cmid.Failure); ok {
		return f
	}
	if _, ok := ev.(*cmid.ConnectRequest); ok {
		return h.accept(h.endpoint(id))
	}
	if e, ok := id.Context.(*peer); ok {
		return e.event(ev)
	}
	return nil
}
