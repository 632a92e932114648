package rpc

import (
	"context"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Client calls a server over one connection. Its methods, and calls, are for any goroutine; those that wait not for a loop's.
type Client struct {
	rt   *rdma.Runtime
	sys  *actor.ActorSystem
	addr string
	cfg  clientConfig

	mu     sync.Mutex
	link   *link
	closed bool
}

// Dial connects to a server and returns when the connection is there. ctx is for connecting only.
func Dial(ctx context.Context, rt *rdma.Runtime, addr string, opts ...ClientOption) (*Client, error) {
	c := &Client{rt: rt, sys: rt.System(), addr: addr, cfg: newClientConfig(opts)}
	l, err := c.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("rpc: dial %s: %w", addr, err)
	}
	c.link = l
	return c, nil
}

// connect makes a connection.
func (c *Client) connect(ctx context.Context) (*link, error) {
	l := newLink(c)
	l.out.sys = c.sys
	l.out.pid = c.sys.Root.Spawn(actor.PropsFromFunc(l.receive, c.rt.OnLoop()))
	c.sys.Root.Send(l.out.pid, &dial{})
	select {
	case err := <-l.ready:
		if err != nil {
			return nil, err
		}
		return l, nil
	case <-ctx.Done():
		c.sys.Root.Send(l.out.pid, &hangUp{context.Cause(ctx)})
		<-l.gone
		return nil, context.Cause(ctx)
	}
}

// current is the connection that calls go over.
func (c *Client) current() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, &Error{Code: CodeClosed, Fate: FateNotSent}
	}
	return c.link, nil
}

// InFlight is how many calls wait for the server, those included whose callers have gone.
func (c *Client) InFlight() int {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.inUse
}

// Close ends the connection; calls in flight fail with ErrClosed. It waits until the identifier is gone.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	l := c.link
	c.mu.Unlock()
	c.sys.Root.Send(l.out.pid, &hangUp{ErrClosed})
	<-l.gone
}
