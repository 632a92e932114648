package contest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// World is a runtime of this project with its actor system.
type World struct {
	RT     *rdma.Runtime
	System *actor.ActorSystem
}

// NewSystem makes an actor system that logs to standard error.
func NewSystem(level slog.Level) *actor.ActorSystem {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
}

// OpenWorld opens a runtime. The entry decides its device, its number of loops, how they wait, and
// how connections are secured.
func OpenWorld(e measure.Entry, cfg rdma.Config) (World, error) {
	return OpenWorldIn(NewSystem(slog.LevelError), e, cfg)
}

// OpenWorldIn is OpenWorld with an existing actor system.
func OpenWorldIn(system *actor.ActorSystem, e measure.Entry, cfg rdma.Config) (World, error) {
	own, err := securityOf(e)
	if err != nil {
		return World{}, err
	}
	cfg.Security = cmp.Or(cfg.Security, own)
	cfg.Device, cfg.Loops = newDevice(e), slices.Repeat([]eventloop.Config{{Wait: e.Wait}}, max(e.Loops, 1))
	rt, err := rdma.Open(system, cfg)
	return World{rt, system}, err
}

// Close shuts the runtime and its actor system down.
func (w World) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := w.RT.Shutdown(ctx)
	w.System.Shutdown()
	return err
}

// Spawn starts an actor on a loop. It sends failures to failed instead of the actor. Failures for
// which failed has no room are dropped.
func (w World) Spawn(failed chan<- error, receive actor.ReceiveFunc) *actor.PID {
	return w.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if f, ok := ctx.Message().(rdma.Failure); ok {
			select {
			case failed <- f:
			default: // one is enough
			}
			return
		}
		receive(ctx)
	}, w.RT.OnLoop()))
}

// ServeActors starts a server that accepts every request. receive is called on the loop with every
// message except failures, and with a request before it is accepted.
func ServeActors(e measure.Entry, receive actor.ReceiveFunc, cfg rdma.IDConfig) (measure.Service, error) {
	w, err := OpenWorld(e, rdma.Config{})
	if err != nil {
		return measure.Service{}, err
	}
	failed, listening := make(chan error, 1), make(chan string, 1)
	w.Spawn(failed, func(ctx actor.Context) {
		receive(ctx)
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(w.RT.CreateID(ctx.Self(), cfg), &rdma.Serve{Addr: Loopback})
		case *rdma.Listening:
			listening <- m.Local.String()
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		}
	})
	select {
	case addr := <-listening:
		return measure.Service{Addr: addr, Close: w.Close}, nil
	case err := <-failed:
		return measure.Service{}, fmt.Errorf("listening: %w", err)
	}
}

func serveActor(e measure.Entry) (measure.Service, error) {
	return ServeActors(e, func(ctx actor.Context) {
		if m, ok := ctx.Message().(*rdma.Received); ok {
			ctx.Respond(rdma.NewSend(m.Data))
		}
	}, rdma.IDConfig{})
}

// job is the work of the client's actor on its connection. Its methods are called on the loop.
type job interface {
	beginSending(send sendFunc)
	// handleMessage handles the message p, and reports whether the job is done.
	handleMessage(p []byte, send sendFunc) (done bool, err error)
}

type sendFunc = func(*rdma.Send)

// actorClient is an actor with a connection.
type actorClient struct {
	World
	pid   *actor.PID
	ended chan error // when the job or the connection ends
}

type startJob struct{ job }

func dialActors(addr string, e measure.Entry, sendQueue int, cfg rdma.IDConfig) (*actorClient, error) {
	w, err := OpenWorld(e, rdma.Config{Limits: rdma.Limits{SendQueue: sendQueue}})
	if err != nil {
		return nil, err
	}
	c := &actorClient{World: w, ended: make(chan error, 2)}
	var conn *actor.PID
	var now job
	c.pid = w.Spawn(c.ended, func(ctx actor.Context) {
		send := func(m *rdma.Send) { ctx.Send(conn, m) }
		switch m := ctx.Message().(type) {
		case *actor.Started:
			conn = w.RT.CreateID(ctx.Self(), cfg)
			ctx.Request(conn, &rdma.Dial{Addr: addr})
		case *rdma.Established:
			c.ended <- nil
		case startJob:
			now = m.job
			now.beginSending(send)
		case *rdma.Received:
			if done, err := now.handleMessage(m.Data, send); done || err != nil {
				c.ended <- err
			}
		}
	})
	if err := <-c.ended; err != nil {
		return nil, errors.Join(fmt.Errorf("connecting: %w", err), w.Close())
	}
	return c, nil
}

func (c *actorClient) runJob(j job) error {
	c.System.Root.Send(c.pid, startJob{j})
	return <-c.ended
}

func dialActor(addr string, e measure.Entry) (measure.Client, error) {
	c, err := dialActors(addr, e, 1, rdma.IDConfig{})
	if err != nil {
		return measure.Client{}, err
	}
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		t := &trips{payload: NewPayload(PayloadSize), d: d, times: stats.NewTimes(2)}
		err := c.runJob(t)
		return measure.Sample{
			N: t.n, Seconds: time.Since(t.begun).Seconds(), Bytes: t.n * PayloadSize, Times: measure.Percentiles(t.times),
		}, err
	}, Close: c.Close}, nil
}

// trips makes round trips, one after the other.
type trips struct {
	payload     []byte
	d           time.Duration
	times       stats.Times
	n           int
	begun, last time.Time
}

func (t *trips) beginSending(send sendFunc) {
	t.begun = time.Now()
	t.last = t.begun
	send(rdma.NewSend(t.payload))
}

func (t *trips) handleMessage(p []byte, send sendFunc) (bool, error) {
	if err := Echoed(p, t.payload); err != nil {
		return true, err
	}
	now := time.Now()
	t.times.Add(now.Sub(t.last))
	t.n++
	t.last = now
	if now.Sub(t.begun) >= t.d {
		return true, nil
	}
	send(rdma.NewSend(t.payload))
	return false, nil
}

// dialsAtOnce is how many of many connections are established at the same time.
const dialsAtOnce = 64

// DialMany makes n connections of one actor, and returns when all are established.
func (w World) DialMany(addr string, n int) error {
	ended := make(chan error, 1)
	dialled, established := 0, 0
	w.Spawn(ended, func(ctx actor.Context) {
		dials := 1
		switch ctx.Message().(type) {
		case *actor.Started:
			dials = dialsAtOnce
		case *rdma.Established:
			if established++; established == n {
				ended <- nil
			}
		default:
			return
		}
		for ; dials > 0 && dialled < n; dials-- {
			dialled++
			ctx.Request(w.RT.CreateID(ctx.Self()), &rdma.Dial{Addr: addr})
		}
	})
	return <-ended
}
