package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/optional"
)

// Client calls a server, or those of a pool (NewPool): over one connection each. It makes another
// one when that is lost or its server drains. Its methods, and calls over it, may be used on any
// goroutine. Those that wait must not be used on a loop's.
type Client struct {
	rt      *rdma.Runtime
	sys     *actor.ActorSystem
	cfg     ClientConfig
	addr    string      // of the only server; "": there is a pool
	name    string      // of the servers, in errors
	pool    *PoolConfig // nil: there is one server
	servers Resolver    // of a pool
	seed    uint64      // of Subset
	calls   sync.Pool   // *clientCall
	ledger  *ledger
	budget  budget
	// results of settings by method.index, replaced as a whole; nil: none yet. An entry is nil
	// until the method is called
	merged atomic.Pointer[[]*MethodConfig]

	streams atomic.Int64 // opened, and not ended by the server or not read to the end
	beyond  atomic.Int64 // bytes that they keep beyond their windows, and of answers in parts

	mu        sync.Mutex
	began     bool               // connections are being made
	resolved  bool               // servers has reported
	stop      func()             // ends servers' reports
	endpoints []*endpoint        // ordered by address
	links     map[*link]struct{} // all links that are not gone, including those that drain
	connected int                // endpoints that serve
	ejecting  time.Time          // no server is ejected from then on
	turn      uint               // of RoundRobin
	changed   chan struct{}      // closed at a change that may end a call's wait for a connection
	waiting   int                // calls that wait for changed
	why       error              // why a connection, or the list of servers, was lost last
	last      bool               // no further link: the runtime was shut down
	closed    bool
}

// NewClient makes a client of the server at addr, and does not wait for it: the first call begins
// to connect, in the background, and waits for the first attempt. Until Close, a failed connection
// is replaced by another one, beginning with the address of the name that worked last; meanwhile
// calls fail with ErrUnavailable and the cause, or wait (ClientConfig.WaitForReady).
// Connect connects before the first call.
func NewClient(rt *rdma.Runtime, addr string, cfg ...ClientConfig) *Client {
	c := newClient(rt, optional.Value(cfg))
	c.addr, c.name = addr, addr
	return c
}

func newClient(rt *rdma.Runtime, cfg ClientConfig) *Client {
	c := &Client{
		rt: rt, sys: rt.System(), cfg: cfg.withDefaults(), ledger: newLedger(),
		links: make(map[*link]struct{}), changed: make(chan struct{}),
	}
	c.budget.fillReserve()
	return c
}

// Dial is NewClient and Connect. If there is no connection, there is no client.
func Dial(ctx context.Context, rt *rdma.Runtime, addr string, cfg ...ClientConfig) (*Client, error) {
	c := NewClient(rt, addr, cfg...)
	if err := c.Connect(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Connect waits for a connection, to any of the servers: until there is one, ctx ends, or an
// attempt to connect to each server has failed. The error is an *Error: ErrUnavailable, or a more
// specific one (ErrForeignPeer, ErrVersion, ErrDraining, ErrDeadline, context.Canceled). It wraps
// the cause. The client goes on trying.
func (c *Client) Connect(ctx context.Context) error {
	if err := eventloop.MayWait(); err != nil {
		return c.connectError(&Error{Code: CodeCanceled, Err: err})
	}
	var within time.Duration
	if by, ok := ctx.Deadline(); ok {
		within = max(time.Until(by), 0) + dialSlack
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginLocked(within)
	for c.connected == 0 {
		switch {
		case c.closed:
			return c.connectError(&Error{Code: CodeClosed})
		case c.last || !c.firstAttemptLocked():
			return c.connectError(c.why)
		}
		c.awaitChangeLocked(ctx)
		if ctx.Err() != nil {
			return c.connectError(contextError(ctx, &method{}, FateNotSent))
		}
	}
	return nil
}

// connectError returns Connect's error.
func (c *Client) connectError(err error) error {
	e := Error{Code: CodeUnavailable, Err: err}
	if known, ok := err.(*Error); ok { //nolint:errorlint // one inside of a failure is not of ours
		e = *known
	}
	e.Message = strings.TrimSuffix("dial "+c.name+": "+e.Message, ": ")
	e.Fate = FateNotSent
	return &e
}

// dialSlack is how much longer than its context Connect's first connection may take, so that it is
// the context that ends it.
const dialSlack = 250 * time.Millisecond

// beginLocked begins to connect, once. within is the time that a server's addresses share in the
// first attempt; 0: that of the runtime's Timeouts.
func (c *Client) beginLocked(within time.Duration) {
	if c.began || c.closed {
		return
	}
	c.began = true
	if c.pool == nil {
		c.resolved = true
		c.endpoints = []*endpoint{c.newEndpointLocked(c.addr, within)}
		return
	}
	c.mu.Unlock() // it may report immediately
	defer c.mu.Lock()
	c.watchServers()
}

// watchServers begins to watch the list of servers. If the Resolver panics, calls fail.
func (c *Client) watchServers() {
	var stop func()
	tryCall(func() { stop = c.servers.Watch(c.rt, c.setServers) }, func(why *PanicError) { c.setServers(nil, why) })
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.stop = stop
	}
	c.mu.Unlock()
	if closed && stop != nil {
		stop()
	}
}

// isConnected reports whether there is a connection. Without one, a call may wait.
func (c *Client) isConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connected > 0
}

// firstAttemptLocked reports whether no attempt to connect has failed yet at one of the servers, or
// it is not known yet which they are.
func (c *Client) firstAttemptLocked() bool {
	return !c.resolved || slices.ContainsFunc(c.endpoints, func(e *endpoint) bool { return e.why == nil })
}

// changedLocked makes those that wait for a connection check again whether there is one.
func (c *Client) changedLocked() {
	if c.waiting > 0 {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// awaitChangeLocked waits for a change, the end of ctx, or a loop that has stalled.
func (c *Client) awaitChangeLocked(ctx context.Context) {
	changed := c.changed
	c.waiting++
	c.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	case <-c.rt.Stalled():
	}
	c.rt.Scheduler().Resume()
	c.mu.Lock()
	c.waiting--
}

// currentLink returns the connection for a call of m, to another server than not if there is a
// choice. If there is none it waits for the first attempts, and for later ones if ready is set.
func (c *Client) currentLink(ctx context.Context, m *method, ready bool, not avoided) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginLocked(0)
	for {
		if c.closed {
			return nil, &Error{Code: CodeClosed, Method: m.name, Fate: FateNotSent}
		}
		if l := c.chooseLocked(ctx, not); l != nil {
			return l, nil
		}
		waits := ready || c.firstAttemptLocked()
		switch {
		case !waits && errors.Is(c.why, ErrDraining):
			return nil, &Error{Code: CodeDraining, Method: m.name, Fate: FateNotSent}
		case !waits, c.last:
			return nil, &Error{Code: CodeUnavailable, Method: m.name, Fate: FateNotSent, Err: c.why}
		case c.waiting >= c.cfg.MaxCalls:
			return nil, &Error{Code: CodeOverloaded, Method: m.name, Fate: FateNotSent, Message: fmt.Sprintf("%d calls wait for a connection (ClientConfig.MaxCalls)", c.waiting), Err: c.why}
		}
		if err := onLoop(m, FateNotSent); err != nil {
			return nil, err
		}
		counts := c.ledger.countsOf(m)
		counts.unconnected.Add(1)
		c.awaitChangeLocked(ctx)
		counts.unconnected.Add(-1)
		if ctx.Err() != nil {
			return nil, withCause(contextError(ctx, m, FateNotSent), c.why)
		}
	}
}

// withCause completes the error of a call that has waited for a connection: it adds why there was
// none.
func withCause(e *Error, why error) error {
	switch {
	case why == nil:
	case e.Err == nil:
		e.Err = fmt.Errorf("waiting for a connection: %w", why)
	default:
		e.Err = fmt.Errorf("%w, waiting for a connection: %w", e.Err, why)
	}
	return e
}

// InFlight returns how many calls wait for the servers, also those that their callers have given
// up.
func (c *Client) InFlight() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.links {
		n += int(l.inUse.Load())
	}
	return n
}

// Close ends the connections; calls in flight fail with ErrClosed. It waits until the identifiers
// are gone, but not on a loop.
func (c *Client) Close() {
	c.mu.Lock()
	stop := c.stop
	if !c.closed {
		c.closed = true
		for _, e := range c.endpoints {
			e.retireLocked()
		}
		c.changedLocked()
	}
	c.stop = nil
	links := slices.SortedFunc(maps.Keys(c.links), func(a, b *link) int {
		return strings.Compare(a.out.pid.Id, b.out.pid.Id)
	})
	c.mu.Unlock()
	for _, l := range links {
		l.sendToActor(&hangUp{ErrClosed})
	}
	if stop != nil {
		stop() // the user's: it may not return
	}
	if eventloop.MayWait() != nil {
		return
	}
	for _, l := range links {
		<-l.gone
		c.rt.Scheduler().Resume()
	}
}
