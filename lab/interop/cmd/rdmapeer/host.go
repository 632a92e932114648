package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/states"
)

// host has an event channel, on which it waits for one event after the other, as the C programs do.
// It keeps the first error. After an error its methods do nothing.
type host struct {
	ch      *endpoint.Channel
	timeout time.Duration // of each wait
	out     io.Writer
	err     error

	peers    []*peer
	listener *cmid.ID
	accept   func(e *peer) error // called with the peer of each request
}

// close frees everything, in the order of the C programs.
func (h *host) close() error {
	var errs []error
	for _, e := range h.peers {
		errs = append(errs, e.close())
	}
	if h.listener != nil {
		errs = append(errs, h.listener.Destroy())
	}
	return errors.Join(append(errs, h.ch.Close())...)
}

// runUnlessFailed calls f unless host already has an error.
func (h *host) runUnlessFailed(f func() error) {
	if h.err == nil {
		h.err = f()
	}
}

// eachPeer calls f with every peer.
func (h *host) eachPeer(f func(e *peer) error) {
	for _, e := range h.peers {
		h.runUnlessFailed(func() error { return f(e) })
	}
}

func (h *host) printLine(format string, args ...any) {
	if h.err == nil {
		fmt.Fprintf(h.out, format+"\n", args...)
	}
}

// finalStatus returns the status that the programs print at their end.
func (h *host) finalStatus() int {
	if h.err != nil {
		return -1
	}
	return 0
}

// lookUpAddr resolves a node and a service to an address.
func (h *host) lookUpAddr(node, service string, ps cmid.PortSpace, passive bool) (addr cmid.Addr) {
	h.runUnlessFailed(func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
		defer cancel()
		addr, err = device.Lookup(ctx, ps, node, service, passive)
		return err
	})
	return addr
}

// startListener makes the listener. accept is called with the peer of each request.
func (h *host) startListener(bind, port string, ps cmid.PortSpace, accept func(e *peer) error) {
	addr := h.lookUpAddr(bind, port, ps, true)
	h.accept = accept
	h.runUnlessFailed(func() (err error) {
		h.listener, err = endpoint.Listen(h.ch.Channel, ps, addr, 0)
		return err
	})
	if h.err == nil {
		h.printLine("listening on %v", h.listener.LocalAddr())
	}
}

// newPeer makes the peer for an identifier.
func (h *host) newPeer(id *cmid.ID) *peer {
	e := &peer{Endpoint: endpoint.Endpoint{ID: id}, seen: make(map[states.Kind]cmid.Event)}
	id.Context = e
	h.peers = append(h.peers, e)
	return e
}

// resolvePeers makes n peers, and resolves dst and the route to it for each.
func (h *host) resolvePeers(n int, src, dst cmid.Addr, ps cmid.PortSpace) {
	h.resolveAddr(n, src, dst, ps)
	h.eachPeer(func(e *peer) error { return e.ID.ResolveRoute(h.timeout) })
	h.awaitEvent("resolving the route", states.KindRouteResolved)
}

func (h *host) resolveAddr(n int, src, dst cmid.Addr, ps cmid.PortSpace) {
	for range n {
		h.runUnlessFailed(func() error {
			id, err := h.ch.CreateID(ps)
			if err != nil {
				return err
			}
			return h.newPeer(id).ID.ResolveAddr(src, dst, h.timeout)
		})
	}
	h.awaitEvent("resolving the address", states.KindAddrResolved)
}

// connectAll connects every peer.
func (h *host) connectAll(p *cmid.ConnParam) {
	h.eachPeer(func(e *peer) error { return e.ID.Connect(nil, p) })
	h.awaitEvent("connecting", states.KindEstablished)
}

// awaitConnections waits until the listener has n connections.
func (h *host) awaitConnections(n int) {
	h.handleUntil("awaiting the client", func() (bool, error) { return len(h.peers) == n && h.allSaw(states.KindEstablished), nil })
}

// awaitDisconnects waits until the other side has disconnected all connections.
func (h *host) awaitDisconnects() { h.awaitEvent("awaiting the end", states.KindDisconnected) }

// disconnectAll disconnects every connection that the other side has not ended, and waits until all
// have ended.
func (h *host) disconnectAll() {
	h.eachPeer((*peer).disconnectOnce)
	h.awaitDisconnects()
}

// awaitEvent waits until every peer has got an event of this kind.
func (h *host) awaitEvent(what string, k states.Kind) {
	h.handleUntil(what, func() (bool, error) { return h.allSaw(k), nil })
}

// allSaw reports whether every peer has got an event of this kind.
func (h *host) allSaw(k states.Kind) bool {
	return !slices.ContainsFunc(h.peers, func(e *peer) bool { return e.seen[k] == nil })
}

// awaitMessages waits until every peer has received and sent that many messages.
func (h *host) awaitMessages(what string, received, sent int) {
	h.runUnlessFailed(func() error {
		h.handleUntil(what, func() (bool, error) { return h.allHave(received, sent) })
		for _, e := range h.peers {
			if h.err != nil {
				h.err = fmt.Errorf("%w; %d of %d messages received, %d of %d sent", h.err, e.received, received, e.sent, sent)
			}
		}
		return h.err
	})
}

// allHave reports whether every peer has received and sent that many messages.
func (h *host) allHave(received, sent int) (all bool, err error) {
	all = true
	for _, e := range h.peers {
		if err := e.pollCompletions(); err != nil {
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
}

// handleUntil handles events up to the moment when done returns true. done must not post work
// requests.
func (h *host) handleUntil(what string, done func() (bool, error)) {
	for end := time.Now().Add(h.timeout); h.err == nil; {
		err := h.ch.Drain(h.handleEvent)
		ok := false
		if err == nil {
			ok, err = done()
		}
		left := time.Until(end)
		switch {
		case err != nil:
			h.err = fmt.Errorf("%s: %w", what, err)
		case ok:
			return
		case left <= 0:
			h.err = fmt.Errorf("%s: not within %v", what, h.timeout)
		default:
			_, h.err = h.ch.Wait(left)
		}
	}
}

func (h *host) handleEvent(id *cmid.ID, ev cmid.Event) error {
	if f, ok := ev.(cmid.Failure); ok {
		return f
	}
	if _, ok := ev.(*cmid.ConnectRequest); ok {
		e := h.newPeer(id)
		e.seen[ev.Kind()] = ev
		return h.accept(e)
	}
	if e, ok := id.Context.(*peer); ok {
		return e.handleEvent(ev)
	}
	return nil
}
