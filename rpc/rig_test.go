package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// rig is a server on one machine and a client on another, in virtual time.
type rig struct {
	*actortest.World
	t    *testing.T
	far  *rdma.Runtime // the server's
	s    *Server
	addr string
	c    *Client
}

// The server's machine.
const there = "10.0.0.2"

type rigConfig struct {
	server ServerConfig
	client ClientConfig
	world  actortest.Config
}

// inWorlds runs inWorld on both kinds of device.
func inWorlds(t *testing.T, setup func(s *Server), test func(r *rig)) {
	t.Helper()
	for name, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{world: actortest.Config{InfiniBand: infiniBand}}, setup, test)
		})
	}
}

// inWorld runs test with a server that setup has given its handlers, and a client that is
// connected to it.
func inWorld(t *testing.T, cfg rigConfig, setup func(s *Server), test func(r *rig)) {
	t.Helper()
	actortest.Run(t, cfg.world, func(w *actortest.World) {
		r := &rig{World: w, t: w.T()}
		r.far = w.Host("mem1", there)
		r.s = NewServer(r.far, cfg.server)
		setup(r.s)
		at, err := r.s.Listen(w.T().Context(), there+":7471")
		if err != nil {
			r.t.Fatal(err)
		}
		r.addr = at.String()
		r.c = r.dial(cfg.client)
		test(r)
		r.c.Close()
		r.s.Close()
	})
}

func (r *rig) dial(cfg ...ClientConfig) *Client {
	r.t.Helper()
	c, err := Dial(r.t.Context(), r.Runtime(), r.addr, cfg...)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// good asserts that the server still serves, over a new connection.
func (r *rig) good() {
	r.t.Helper()
	c := r.dial()
	defer c.Close()
	if got, err := CallRaw(r.t.Context(), c, echo, []byte("still there"), nil); err != nil || string(got) != "still there" {
		r.t.Errorf("another connection: %q, %v", got, err)
	}
}

// want asserts an error and the fate of the call.
func want(t *testing.T, err, is error, f Fate) {
	t.Helper()
	var e *Error
	if !errors.Is(err, is) || !errors.As(err, &e) || e.Fate != f {
		t.Errorf("got %v, want %v (%v)", err, is, f)
	}
}

var (
	echo     = NewRawMethod("test.Echo")
	block    = NewRawMethod("test.Block")
	fail     = NewRawMethod("test.Fail")
	nowhere  = NewRawMethod("test.Nowhere")
	errTaken = RegisterCode(1001, "taken")
)

func handleEcho(s *Server) {
	HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil })
}

// blocking is a handler of block that waits for its context, or for release, and reports the
// result.
type blocking struct {
	began   chan struct{}
	release chan struct{}
	ended   chan error
}

func handleBlock(s *Server) *blocking {
	b := &blocking{make(chan struct{}, 1000), make(chan struct{}), make(chan error, 1000)}
	HandleRaw(s, block, func(ctx context.Context, q, reply []byte) ([]byte, error) {
		b.began <- struct{}{}
		select {
		case <-b.release:
			b.ended <- nil
			return append(reply, q...), nil
		case <-ctx.Done():
			b.ended <- context.Cause(ctx)
			return nil, ctx.Err()
		}
	})
	return b
}

// within returns a context of the bubble's with a deadline.
func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	r.t.Cleanup(cancel)
	return ctx
}

// link returns the connection of a client of one server; nil: there is none.
func (c *Client) link() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chooseLocked(context.Background(), avoided{})
}
