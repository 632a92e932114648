package main

import (
	"fmt"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/perf"
)

// flow is messages of one size, one way. The receiver answers each batch, the sender has no more than window messages unanswered: the
// same for everybody but net.Conn, which has TCP's window.
type flow struct{ size, batch, window int }

var (
	smallFlow = flow{64, 1024, 4096}
	pageFlow  = flow{4 << 10, 256, 1024}
	largeFlow = flow{1 << 20, 4, 16}
)

func (f flow) serve(e entry) (service, error) {
	switch e.contestant {
	case "verbs", ownMemory:
		return serveVerbs(e)
	case "net.Conn":
		return listenTCP(f.drain)
	case "actor":
		return f.serveActor(e)
	}
	return nil, fmt.Errorf("%s is not for one way", e.contestant)
}

func (f flow) dial(addr string, e entry) (client, error) {
	switch e.contestant {
	case "verbs", ownMemory:
		return dialVerbs(addr, e, perf.Test{Op: perf.Send, Kind: perf.Bandwidth, Size: f.size, Depth: f.window})
	case "net.Conn":
		return dialConnFlow(addr, f)
	case "actor":
		c, err := dialActors(addr, e, f.window+1, f.messages())
		return actorFlow{c, f}, err
	}
	return nil, fmt.Errorf("%s is not for one way", e.contestant)
}

// messages has room for the window twice.
func (f flow) messages() rdma.IDOption { return rdma.WithMessages(f.size, 2*f.window) }

func (f flow) serveActor(e entry) (service, error) {
	got := make(map[*actor.PID]int)
	return serveActors(e, func(ctx actor.Context, m *rdma.Received) {
		n := got[ctx.Sender()] + 1
		if n == f.batch {
			n = 0
			ctx.Respond(rdma.NewSend(nil))
		}
		got[ctx.Sender()] = n
	}, f.messages())
}

type actorFlow struct {
	*actorClient
	flow
}

func (c actorFlow) Run(d time.Duration) (sample, error) {
	o := &oneWay{flow: c.flow, d: d}
	err := c.do(o)
	return sample{N: o.arrived, Seconds: o.took.Seconds(), Bytes: o.arrived * c.size}, err
}

// drain reads batches, as much at a time as there is up to 1 MiB, and answers each with a byte.
func (f flow) drain(c net.Conn) {
	b := make([]byte, 1<<20)
	for got := 0; ; {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		for got += n; got >= f.batch*f.size; got -= f.batch * f.size {
			if _, err := c.Write([]byte{1}); err != nil {
				return
			}
		}
	}
}

// connFlow has one write for each message.
type connFlow struct {
	net.Conn
	flow
	answers chan int   // bytes that came
	ended   chan error // why no more come
}

func dialConnFlow(addr string, f flow) (client, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := connFlow{nc, f, make(chan int, 1024), make(chan error, 1)}
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := c.Read(b)
			if err != nil {
				c.ended <- err
				return
			}
			c.answers <- n
		}
	}()
	return c, nil
}

func (c connFlow) Run(d time.Duration) (sample, error) {
	payload := newPayload(c.size)
	begun := time.Now()
	sent, arrived := 0, 0 // batches
	for over := false; !over || arrived < sent; {
		if over = over || time.Since(begun) >= d; !over {
			for range c.batch {
				if _, err := c.Write(payload); err != nil {
					return sample{}, err
				}
			}
			sent++
		}
		n, err := c.arrived(over && arrived < sent)
		if err != nil {
			return sample{}, err
		}
		arrived += n
	}
	took := time.Since(begun)
	n := sent * c.batch
	return sample{N: n, Seconds: took.Seconds(), Bytes: n * c.size}, nil
}

// arrived gives the answers that have come, or waits for one.
func (c connFlow) arrived(wait bool) (int, error) {
	select {
	case n := <-c.answers:
		return n, nil
	case err := <-c.ended:
		return 0, err
	default:
	}
	if !wait {
		return 0, nil
	}
	select {
	case n := <-c.answers:
		return n, nil
	case err := <-c.ended:
		return 0, err
	}
}
