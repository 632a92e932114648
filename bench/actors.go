package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// world is a runtime of ours and its actor system.
type world struct {
	rt     *rdma.Runtime
	system *actor.ActorSystem
}

func openWorld(e entry, opts ...rdma.Option) (world, error) {
	system := newSystem(slog.LevelError)
	rt, err := rdma.Open(system, append([]rdma.Option{rdma.WithDevice(device()), rdma.WithWait(e.wait)}, opts...)...)
	return world{rt, system}, err
}

func (w world) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := w.rt.Shutdown(ctx)
	w.system.Shutdown()
	return err
}

// actorService is an actor that every connection belongs to.
type actorService struct {
	world
	addr string
}

func (s actorService) Addr() string { return s.addr }

// serveActors has received called, on the loop, with everything that comes.
func serveActors(e entry, received func(ctx actor.Context, m *rdma.Received), opts ...rdma.IDOption) (service, error) {
	w, err := openWorld(e)
	if err != nil {
		return nil, err
	}
	listening := make(chan any, 1)
	w.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(w.rt.CreateID(ctx.Self(), opts...), &rdma.Serve{Addr: loopback})
		case *rdma.Listening:
			listening <- m.Local.String()
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			received(ctx, m)
		case rdma.Failure:
			select {
			case listening <- m:
			default: // a client has gone
			}
		}
	}, w.rt.OnLoop()))
	switch x := (<-listening).(type) {
	case string:
		return actorService{w, x}, nil
	default:
		return nil, fmt.Errorf("listening: %v", x)
	}
}

func serveActor(e entry) (service, error) {
	return serveActors(e, func(ctx actor.Context, m *rdma.Received) { ctx.Respond(rdma.NewSend(m.Data)) })
}

// job is what the client's actor does on its connection. Its methods are called on the loop.
type job interface {
	begin(send sendFunc) error
	// received takes a message, and reports whether the job is done.
	received(p []byte, send sendFunc) (done bool, err error)
}

type sendFunc = func(*rdma.Send)

// actorClient is an actor with a connection.
type actorClient struct {
	world
	pid   *actor.PID
	ended chan error // of the job, or of the connection
}

type startJob struct{ job }

func dialActors(addr string, e entry, sendQueue int, opts ...rdma.IDOption) (*actorClient, error) {
	w, err := openWorld(e, rdma.WithLimits(rdma.Limits{SendQueue: sendQueue}))
	if err != nil {
		return nil, err
	}
	c := &actorClient{world: w, ended: make(chan error, 2)}
	var conn *actor.PID
	var now job
	c.pid = w.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		send := func(m *rdma.Send) { ctx.Send(conn, m) }
		var err error
		switch m := ctx.Message().(type) {
		case *actor.Started:
			conn = w.rt.CreateID(ctx.Self(), opts...)
			ctx.Request(conn, &rdma.Dial{Addr: addr})
		case *rdma.Established:
			c.ended <- nil
		case startJob:
			now = m.job
			err = now.begin(send)
		case *rdma.Received:
			var done bool
			if done, err = now.received(m.Data, send); done {
				c.ended <- err
				return
			}
		case rdma.Failure:
			err = m
		}
		if err != nil {
			select {
			case c.ended <- err:
			default: // one is enough
			}
		}
	}, w.rt.OnLoop()))
	if err := <-c.ended; err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return c, nil
}

func (c *actorClient) do(j job) error {
	c.system.Root.Send(c.pid, startJob{j})
	return <-c.ended
}

func dialActor(addr string, e entry) (tripper, error) { return dialActors(addr, e, 1) }

func (c *actorClient) Trips(payload []byte, d time.Duration, h *hdrhistogram.Histogram) (int, error) {
	t := &trips{payload: payload, d: d, h: h}
	err := c.do(t)
	return t.n, err
}

// trips makes round trips, one after the other.
type trips struct {
	payload     []byte
	d           time.Duration
	h           *hdrhistogram.Histogram
	n           int
	begun, last time.Time
}

func (t *trips) begin(send sendFunc) error {
	t.begun = time.Now()
	t.last = t.begun
	send(rdma.NewSend(t.payload))
	return nil
}

func (t *trips) received(p []byte, send sendFunc) (bool, error) {
	if err := echoed(p, t.payload); err != nil {
		return true, err
	}
	now := time.Now()
	record(t.h, now.Sub(t.last))
	t.n++
	t.last = now
	if now.Sub(t.begun) >= t.d {
		return true, nil
	}
	send(rdma.NewSend(t.payload))
	return false, nil
}

// oneWay sends batches, of which some are on their way, and has each answered by an empty message.
type oneWay struct {
	flow
	d             time.Duration
	begun         time.Time
	sent, arrived int
	over          bool
	took          time.Duration
}

func (o *oneWay) begin(send sendFunc) error {
	o.begun = time.Now()
	o.fill(send)
	return nil
}

func (o *oneWay) fill(send sendFunc) {
	for !o.over && o.sent+o.batch <= o.arrived+o.window {
		for range o.batch {
			send(rdma.NewSendBuffer(o.size)) // made where it is sent from, as the verbs level's
		}
		o.sent += o.batch
	}
}

func (o *oneWay) received(p []byte, send sendFunc) (bool, error) {
	if len(p) > 0 {
		return true, fmt.Errorf("a message of %d bytes came back", len(p))
	}
	o.arrived += o.batch
	o.took = time.Since(o.begun)
	o.over = o.over || o.took >= o.d
	o.fill(send)
	return o.over && o.arrived == o.sent, nil
}
