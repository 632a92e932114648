package main

import (
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// host is the server's actor for one connection. The request contains the client's name.
type host struct {
	s        *stage
	serve    func(h *host, ctx actor.Context)
	crowd    bool   // the incident has a crowd
	party    *party // nil: one of the crowd
	conn     *actor.PID
	id       rdma.Handle
	retained []*rdma.Received
}

const (
	tickEvery = 50 * time.Millisecond
	lines     = 20 // sent to each subscriber at each tick
	crowdName = "crowd"
)

// The messages to a host, besides the connection's events.
type (
	tick   struct{}
	hangUp struct{}
)

func (h *host) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.ConnectRequest:
		h.handleRequest(ctx, m)
	case *hangUp:
		ctx.Request(h.conn, &rdma.Disconnect{})
	case *rdma.Closed:
		h.handleClosed(ctx)
	case *rdma.Established:
		rdma.After(ctx, tickEvery, &tick{})
	case *tick:
		h.serve(h, ctx)
		rdma.After(ctx, tickEvery, m)
	case *rdma.Received, *rdma.SendFailed:
		h.serve(h, ctx)
	}
}

func (h *host) handleRequest(ctx actor.Context, m *rdma.ConnectRequest) {
	name := string(m.PrivateData)
	h.party, h.conn, h.id = h.s.parties.find(name), ctx.Sender(), m.Ident()
	switch {
	case h.party != nil:
		h.party.id.Store(uint64(h.id))
	case name == crowdName && h.crowd:
		h.s.mu.Lock()
		h.s.crowd[ctx.Self().Id] = ctx.Self()
		h.s.mu.Unlock()
	default:
		ctx.Respond(&rdma.Reject{PrivateData: []byte("who are you?")})
		return
	}
	ctx.Respond(&rdma.Accept{})
}

func (h *host) handleClosed(ctx actor.Context) {
	h.releaseRetained()
	if h.party != nil {
		h.party.id.CompareAndSwap(uint64(h.id), 0)
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	delete(h.s.crowd, ctx.Self().Id)
}

// releaseRetained consumes the retained messages.
func (h *host) releaseRetained() {
	for _, m := range h.retained {
		m.Release()
		h.party.countMessage()
	}
	h.retained = nil
}

// isUploader reports whether the client uploads.
func (h *host) isUploader() bool { return h.party != nil && strings.HasPrefix(h.party.name, "upload-") }

// echoMessages sends received messages back.
func (h *host) echoMessages(ctx actor.Context) {
	if m, ok := ctx.Message().(*rdma.Received); ok {
		ctx.Respond(rdma.NewSend(m.Data))
	}
}

// publishLines sends lines, regardless of how fast they are read.
func (h *host) publishLines(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *tick:
		for range lines {
			ctx.Request(h.conn, rdma.NewSend([]byte("what everybody is to know, in a line of some length")))
		}
	case *rdma.SendFailed:
		h.party.missed.Add(uint64(m.Sends))
	}
}

// consumeUploads consumes uploads. While there is trouble it retains them instead.
func (h *host) consumeUploads(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Received:
		if h.s.trouble.Load() {
			h.retained = append(h.retained, m.Retain())
			return
		}
		h.releaseRetained()
		h.party.countMessage()
	case *tick:
		if !h.s.trouble.Load() {
			h.releaseRetained()
		}
	}
}

// blockLoop waits for something that does not come, on the loop, which actors must not do.
func (h *host) blockLoop(ctx actor.Context) {
	if _, ok := ctx.Message().(*tick); ok && h.s.trouble.Load() {
		h.s.waitForOthers()
	}
	h.echoMessages(ctx)
}
