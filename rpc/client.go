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
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Client calls a server over one connection, and makes another one when that is lost or the server
// drains. Its methods, and calls over it, may be used on any goroutine. Those that wait must not
// be used on a loop's.
type Client struct {
	rt     *rdma.Runtime
	sys    *actor.ActorSystem
	addr   string
	cfg    Config
	calls  sync.Pool // *clientCall
	ledger *ledger

	streams atomic.Int64 // opened and not yet ended by the server

	mu      sync.Mutex
	link    *link              // carries new calls; nil: none
	dialing *link              // being dialled to replace link; nil: none
	links   map[*link]struct{} // all links that are not gone, including those that drain
	// ends the pause before another is dialled, or the wait for a turn; nil: there is neither
	timer   *time.Timer
	queued  bool              // the pause is over, and the dial waits for its turn
	turn    *reconnect.Ticket // for the next dial
	failed  int               // failed attempts in a row
	upSince time.Time         // start of link
	worked  rdma.Addr         // address of the last connection; zero: none
	ready   chan struct{}     // closed when link is set, or no further link will be made
	waiting int               // calls that wait for ready
	why     error             // why there is no link
	last    bool              // no further link: the runtime was shut down
	closed  bool
}

// Dial connects to a server and returns when the connection is established. ctx limits that first
// connection only, and the addresses of a name share its time. Until Close, a lost connection is
// replaced by another one, beginning with the address that worked last. The error is an *Error:
// ErrUnavailable, or a more specific one (ErrForeignPeer, ErrVersion, ErrDraining, ErrDeadline,
// context.Canceled). It wraps the cause.
func Dial(ctx context.Context, rt *rdma.Runtime, addr string, cfg Config) (*Client, error) {
	c := &Client{
		rt: rt, sys: rt.System(), addr: addr, cfg: cfg.withDefaults(), ledger: newLedger(),
		links: make(map[*link]struct{}), ready: make(chan struct{}),
	}
	if err := eventloop.MayWait(); err != nil {
		return nil, dialError(addr, &Error{Code: CodeCanceled, Err: err})
	}
	c.turn = reconnect.LimiterOf(rt).Ticket(nil, addr, func() { c.rt.Scheduler().Go(c.redial) })
	var within time.Duration
	if by, ok := ctx.Deadline(); ok {
		within = max(time.Until(by), 0) + dialSlack
	}
	connected := make(chan error, 1)
	c.mu.Lock()
	c.connectLocked(within, func(err error) { connected <- err })
	c.mu.Unlock()
	var err error
	select {
	case err = <-connected:
		c.rt.Scheduler().Resume()
	case <-ctx.Done():
		c.rt.Scheduler().Resume()
		err = contextError(ctx, &method{}, FateNotSent)
	}
	if err != nil {
		c.Close()
		return nil, dialError(addr, err)
	}
	return c, nil
}

// dialError is Dial's error.
func dialError(addr string, err error) error {
	e := Error{Code: CodeUnavailable, Err: err}
	if known, ok := err.(*Error); ok { //nolint:errorlint // one inside of a failure is not of ours
		e = *known
	}
	e.Message = strings.TrimSuffix("dial "+addr+": "+e.Message, ": ")
	e.Fate = FateNotSent
	return &e
}

// dialSlack is how much longer than its context Dial's first connection may take, so that it is
// the context that ends it.
const dialSlack = 250 * time.Millisecond

// connectLocked begins a connection. The addresses of the name share the time within; 0: the time
// of the runtime's Timeouts.
func (c *Client) connectLocked(within time.Duration, report func(error)) {
	l := newLink(c.rt, c.addr, &c.cfg, c, &c.streams, c.ledger)
	l.report, l.within, l.first = report, within, c.worked
	l.out.pid = c.sys.Root.SpawnPrefix(actor.PropsFromFunc(l.receive, c.rt.OnLoop(), resuming), "rpc")
	c.dialing = l
	c.links[l] = struct{}{}
	l.notify(&dial{})
}

// up makes calls use a new connection.
func (c *Client) up(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialing == l && !c.closed && !c.last {
		c.dialing, c.link, c.upSince, c.worked = nil, l, time.Now(), l.peer
		close(c.ready)
	}
}

// moveOn records that a connection takes no further calls, and why. Later calls use another one,
// which is dialled if there is none.
func (c *Client) moveOn(l *link, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last {
		why = c.why // calls do not wait for another connection, however this one ended
	}
	if c.dialing == l {
		c.dialing, c.why = nil, why
	}
	if c.link == l {
		c.link, c.why = nil, why
		if c.cfg.Backoff.Restarts(time.Since(c.upSince), l.used) {
			c.failed = 0
		}
		if !c.closed && !c.last {
			c.ready = make(chan struct{})
		}
	}
	if errors.Is(why, rdma.ErrShutdown) && !c.closed && !c.last {
		c.last, c.why = true, why // even if l was a connection that drains
		c.turn.Leave()
		if c.link == nil {
			close(c.ready)
		}
	}
	if c.closed || c.last || c.link != nil || c.dialing != nil || c.timer != nil {
		return
	}
	d := c.cfg.Backoff.Longest(c.failed)
	c.failed++
	d = time.Duration(c.rt.Scheduler().Rand().Int64N(int64(d)))
	c.timer = c.rt.Scheduler().AfterFunc(d, func() {
		c.mu.Lock()
		c.queued = true
		c.mu.Unlock()
		c.redial()
	})
}

// redial connects again when it is its turn. It may be called at any time. If no dial waits for
// its turn it does nothing.
func (c *Client) redial() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.queued || c.closed || c.last {
		return
	}
	c.timer.Stop()
	ok, after := c.turn.Enter(time.Now())
	switch {
	case ok:
		c.timer, c.queued = nil, false
		c.connectLocked(0, func(error) { c.turn.Done() })
	case after > 0:
		c.timer = c.rt.Scheduler().AfterFunc(after, c.redial)
	}
}

// gone records that a connection's identifier is gone.
func (c *Client) gone(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.links, l)
}

// current returns the connection that calls go over. With Config.WaitForReady it waits for one.
func (c *Client) current(ctx context.Context, m *method) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.link == nil {
		switch {
		case c.closed:
			return nil, &Error{Code: CodeClosed, Method: m.name, Fate: FateNotSent}
		case !c.cfg.WaitForReady && errors.Is(c.why, ErrDraining):
			return nil, &Error{Code: CodeDraining, Method: m.name, Fate: FateNotSent}
		case !c.cfg.WaitForReady, c.last:
			return nil, &Error{Code: CodeUnavailable, Method: m.name, Fate: FateNotSent, Err: c.why}
		case c.waiting >= c.cfg.MaxCalls:
			return nil, &Error{Code: CodeOverloaded, Method: m.name, Fate: FateNotSent, Message: "as many wait for a connection", Err: c.why}
		}
		ready, over := c.ready, ctx.Done()
		c.waiting++
		c.mu.Unlock()
		counts := c.ledger.method(m)
		counts.unconnected.Add(1)
		var blocked *Error
		select {
		case <-ready:
		case <-over:
		case <-c.rt.Stalled():
			blocked = onLoop(m, FateNotSent)
		}
		c.rt.Scheduler().Resume()
		counts.unconnected.Add(-1)
		c.mu.Lock()
		c.waiting--
		if ctx.Err() != nil {
			return nil, withCause(contextError(ctx, m, FateNotSent), c.why)
		}
		if blocked != nil {
			return nil, blocked
		}
	}
	return c.link, nil
}

// withCause is for the error of a call that has waited for a connection: it adds why there was
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

// InFlight returns how many calls wait for the server, also those that their callers have given up.
func (c *Client) InFlight() (n int) {
	c.mu.Lock()
	links := slices.Collect(maps.Keys(c.links))
	c.mu.Unlock()
	for _, l := range links {
		l.out.mu.Lock()
		n += l.inUse
		l.out.mu.Unlock()
	}
	return n
}

// Close ends the connection; calls in flight fail with ErrClosed. It waits until the identifier is
// gone, but not on a loop.
func (c *Client) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		if c.link == nil && !c.last {
			close(c.ready)
		}
		if c.timer != nil {
			c.timer.Stop()
		}
		c.turn.Leave()
	}
	links := slices.SortedFunc(maps.Keys(c.links), func(a, b *link) int {
		return strings.Compare(a.out.pid.Id, b.out.pid.Id)
	})
	c.link = nil
	c.mu.Unlock()
	for _, l := range links {
		l.notify(&hangUp{ErrClosed})
	}
	if eventloop.MayWait() != nil {
		return
	}
	for _, l := range links {
		<-l.gone
		c.rt.Scheduler().Resume()
	}
}
