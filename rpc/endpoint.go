package rpc

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// endpoint is a server of a Client: the connection that carries its calls, and the one that will
// replace it. Client.mu guards it.
type endpoint struct {
	c    *Client
	addr string
	hash uint64 // of addr, for ByKey and Subset

	link    *link // carries new calls if serves is set; nil: none
	serves  bool  // there is a link, and its server serves (ServiceConfig.Health)
	dialing *link // being dialled to replace link; nil: none
	// ends the pause before another is dialled, or the wait for a turn; nil: there is neither
	timer   *time.Timer
	queued  bool              // the pause is over, and the dial waits for its turn
	turn    *reconnect.Ticket // for the next dial
	failed  int               // failed attempts in a row
	upSince time.Time         // start of link
	worked  rdma.Addr         // address of the last connection; zero: none
	why     error             // why there is no link; nil: no attempt has ended yet
	retired bool              // the resolver does not report it any more, or the client was closed

	ejections    int       // one after the other
	ejectedUntil time.Time // zero: it is not ejected
	// when it was ejected, in ns since 1970, if it has answered no call that began since; 0: never.
	// Results are recorded without Client.mu
	ejectedAt atomic.Int64
	slowSince time.Time // since when it may be new to its load
}

// newEndpointLocked makes a server of a client, and begins to connect to it.
func (c *Client) newEndpointLocked(addr string, within time.Duration) *endpoint {
	e := &endpoint{c: c, addr: addr, hash: hashOf(addr)}
	e.turn = reconnect.LimiterOf(c.rt).Ticket(nil, addr, func() { c.rt.Scheduler().Go(e.redialInTurn) })
	e.connectLocked(within, nil)
	return e
}

// connectLocked begins a connection. The addresses of the name share the time within; 0: the time
// of the runtime's Timeouts. report is called when the dial is over; nil: nobody waits for it.
func (e *endpoint) connectLocked(within time.Duration, report func()) {
	c := e.c
	l := newLink(e)
	l.report, l.within, l.first = report, within, e.worked
	l.out.pid = c.sys.Root.SpawnPrefix(actor.PropsFromFunc(l.receiveMessage, c.rt.OnLoop(), resuming), "rpc")
	e.dialing = l
	c.links[l] = struct{}{}
	l.sendToActor(&dial{})
}

// linkUp makes calls use the new connection l.
func (e *endpoint) linkUp(l *link) {
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.dialing != l || e.retired || c.last {
		return
	}
	now, old := time.Now(), e.link
	e.dialing, e.link, e.upSince, e.worked = nil, l, now, l.peer
	if old != nil {
		old.unwatch()
		old.sendToActor(&leave{}) // it goes on until its calls are answered
	} else {
		e.forgetEjectionsLocked()
	}
	e.watchLocked(l)
}

// replaceLink connects again after a pause, because the server asks for it. Calls use l until that
// has succeeded. However often the server asks, one connection is made per pause. It is called on
// l's loop.
func (e *endpoint) replaceLink(l *link) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	if e.link != l || e.dialing != nil || e.timer != nil || e.c.last {
		return
	}
	if e.c.cfg.Backoff.Restarts(time.Since(e.upSince), l.used) {
		e.failed = 0
	}
	e.pauseLocked()
}

// moveOn records that a connection takes no further calls, and why. Later calls use another one,
// which is dialled if there is none.
func (e *endpoint) moveOn(l *link, why error) {
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last {
		why = c.why // calls do not wait for another connection, however this one ended
	}
	if e.dialing == l {
		e.dialing, e.why = nil, why
		if !e.retired {
			c.why = why
		}
	}
	if e.link == l {
		e.detachLocked()
		e.why, c.why = why, why
		if c.cfg.Backoff.Restarts(time.Since(e.upSince), l.used) {
			e.failed = 0
		}
	}
	if errors.Is(why, rdma.ErrShutdown) && !c.closed && !c.last {
		c.last, c.why = true, why // even if l was a connection that drains
		for _, other := range c.endpoints {
			other.turn.Leave()
		}
	}
	c.changedLocked()
	if e.retired || c.last || e.link != nil || e.dialing != nil || e.timer != nil {
		return
	}
	e.pauseLocked()
}

// pauseLocked begins the pause before the next dial.
func (e *endpoint) pauseLocked() {
	c := e.c
	d := c.pauseAfter(e.failed)
	e.failed++
	e.timer = c.rt.Scheduler().AfterFunc(d, func() {
		c.mu.Lock()
		e.queued = true
		c.mu.Unlock()
		e.redialInTurn()
	})
}

// pauseAfter returns the pause before the next attempt after some that have failed.
func (c *Client) pauseAfter(failed int) time.Duration {
	return time.Duration(c.rt.Scheduler().Rand().Int64N(int64(c.cfg.Backoff.Longest(failed))))
}

// redialInTurn connects again when it is its turn. It may be called at any time. If no dial waits
// for its turn it does nothing.
func (e *endpoint) redialInTurn() {
	c := e.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !e.queued || e.retired || c.last {
		return
	}
	e.timer.Stop()
	ok, after := e.turn.Enter(time.Now())
	switch {
	case ok:
		e.timer, e.queued = nil, false
		e.connectLocked(0, e.turn.Done)
	case after > 0:
		e.timer = c.rt.Scheduler().AfterFunc(after, e.redialInTurn)
	}
}

// linkGone records that a connection's identifier is gone.
func (e *endpoint) linkGone(l *link) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	delete(e.c.links, l)
}

// retireLocked makes calls use this server no more, and returns its connections.
func (e *endpoint) retireLocked() (links [2]*link) {
	e.retired = true
	if e.timer != nil {
		e.timer.Stop()
	}
	e.turn.Leave()
	links = [...]*link{e.link, e.dialing}
	if e.link != nil {
		e.detachLocked()
	}
	return links
}
