package main

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

const (
	thinkFor    = 5 * time.Millisecond   // between an answer and the next request
	readEvery   = 250 * time.Millisecond // of a slow reader
	uploadEvery = 20 * time.Millisecond
	uploadBytes = 60 << 10
	uploadQueue = 16 // messages that an uploader has ready
)

// client is one of the server's clients. It reconnects if its connection is lost.
type client struct {
	s    *stage
	rt   *rdma.Runtime
	p    *party
	act  func(c *client, ctx actor.Context)
	link *actor.PID
	// the generation of the connection; timers of earlier ones are ignored
	generation uint64
	kept       []*rdma.Received
}

// again is a client's timer.
type again struct{ generation uint64 }

// joinClients connects clients of those names from a runtime.
func (s *stage) joinClients(rt *rdma.Runtime, act func(*client, actor.Context), names ...string) {
	for _, name := range names {
		c := &client{s: s, rt: rt, p: s.parties.find(name), act: act}
		s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }, rt.OnLoop()))
	}
}

func (c *client) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.link = c.s.dialServer(c.rt, ctx.Self(), c.p.name)
	case *reconnect.Up:
		c.generation = m.Generation
		c.act(c, ctx)
	case *again:
		if m.generation == c.generation {
			c.act(c, ctx)
		}
	default:
		c.act(c, ctx)
	}
}

// dialServer keeps a connection to the server.
func (s *stage) dialServer(rt *rdma.Runtime, owner *actor.PID, name string) *actor.PID {
	return reconnect.Spawn(rt, owner, reconnect.Config{
		Dial: rdma.Dial{Addr: s.at, PrivateData: []byte(name)}, FailFast: true, Queue: uploadQueue,
	})
}

func (c *client) scheduleAgain(ctx actor.Context, d time.Duration) {
	rdma.After(ctx, d, &again{c.generation})
}

// sendRequest sends a request, and after its answer and a short pause the next one.
func (c *client) sendRequest(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *reconnect.Up, *again:
		ctx.Send(c.link, rdma.NewSend([]byte("are you there?")))
	case *rdma.Received:
		c.p.countMessage()
		c.scheduleAgain(ctx, thinkFor)
	}
}

// countReceived counts the messages received.
func (c *client) countReceived(ctx actor.Context) {
	if _, ok := ctx.Message().(*rdma.Received); ok {
		c.p.countMessage()
	}
}

// readSlowly reads one message in readEvery while there is trouble.
func (c *client) readSlowly(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *reconnect.Up:
		c.scheduleAgain(ctx, readEvery)
	case *rdma.Received:
		if c.s.trouble.Load() || len(c.kept) > 0 {
			c.kept = append(c.kept, m.Retain())
			return
		}
		c.p.countMessage()
	case *again:
		c.releaseOldest()
		for !c.s.trouble.Load() && len(c.kept) > 0 {
			c.releaseOldest()
		}
		c.scheduleAgain(ctx, readEvery)
	case *reconnect.Down:
		for len(c.kept) > 0 {
			c.releaseOldest()
		}
	}
}

// releaseOldest consumes the oldest retained message.
func (c *client) releaseOldest() {
	if len(c.kept) > 0 {
		c.kept[0].Release()
		c.kept = c.kept[1:]
		c.p.countMessage()
	}
}

// sendUploads sends as much as the server accepts.
func (c *client) sendUploads(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *reconnect.Up, *again:
		ctx.Send(c.link, rdma.NewSendBuffer(uploadBytes))
		c.scheduleAgain(ctx, uploadEvery)
	}
}

// freezeClients stops all of a runtime's clients while there is trouble, as if their process was
// stopped, or their machine hung.
func (s *stage) freezeClients(rt *rdma.Runtime) {
	s.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			s.waitForOthers()
			ctx.Stop(ctx.Self())
		}
	}, rt.OnLoop()))
}

// gatherCrowd creates the crowd: clients that only connect.
func (s *stage) gatherCrowd(n int) {
	s.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			for range n {
				s.dialServer(s.clients, ctx.Self(), crowdName)
			}
		}
	}, s.clients.OnLoop()))
}
