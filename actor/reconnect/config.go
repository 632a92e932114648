package reconnect

import (
	"context"
	"math/rand/v2"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Config configures a reconnecting actor. Numbers that are not positive have the defaults, like
// other zero fields. Dial.Addr has no default.
type Config struct {
	// every attempt's; a Timeout also bounds how long one attempt has its place at the Limiter. An
	// attempt begins with the address that the last one has connected to, else with Dial.First
	Dial rdma.Dial
	// Resolve says where Dial.Addr is, before each attempt: nil: the device looks it up. It is
	// called off the loops, one call at a time, and may block until ctx ends; if it does not return
	// by then, the attempt has failed. So it has if Resolve panics.
	Resolve func(ctx context.Context, addr string) (at string, err error)
	ID      rdma.IDConfig // every identifier's

	Queue int // messages that wait for a connection, or for the peer: 256. More are refused
	// nothing waits for the next generation: what a generation leaves unsent is reported, sends
	// while down are refused
	FailFast bool

	Backoff  Backoff
	Rand     *rand.Rand // of the jitter; nil: the process's
	Limiter  *Limiter   // nil: the runtime's, which all share that name none
	Attempts int        // so many that failed in a row end it; 0: never
	// so long without a connection ends it; 0: never, but after 10 s if it has no address then
	GiveUp time.Duration
	// Permanent says whether a failed attempt is not worth another. nil: the function Permanent.
	// It is called on the loop. If it panics, or calls runtime.Goexit, the actor ends, and Closed
	// says so.
	Permanent func(rdma.Failure) bool
	// Context ends it as DestroyID does, when it ends; Closed.Err is the context's cause. nil:
	// nothing does.
	Context context.Context
	// Peers, if the peer has a reconnecting actor to this node, too; then Peer is its node id. If
	// it is this node's own, or that of another actor, which has not delivered Closed, the actor
	// ends with EINVAL. With Peers, Dial.Addr
	// may be empty: then the actor waits for the peer's dials, until Address says where it is.
	Peers *Peers
	Peer  uint64
}

// Backoff is how long it waits between attempts: a random time ("full jitter") of at most First
// after the first failure, twice that after the second, and so on up to Most. After a connection
// that has worked it begins again with First: one that has ended in order, one over which the peer
// has taken messages (package rpc: has answered calls), and one that was up for Stable.
type Backoff struct {
	First  time.Duration // 100 ms
	Most   time.Duration // 30 s
	Stable time.Duration // 10 s
}

const (
	defaultQueue  = 256
	defaultFirst  = 100 * time.Millisecond
	defaultMost   = 30 * time.Second
	defaultStable = 10 * time.Second
	defaultDrain  = 5 * time.Second
	// without an address, and without a connection
	defaultGiveUp  = 10 * time.Second
	defaultResolve = 10 * time.Second
)

// withDefaults fills zero fields.
func (c Config) withDefaults(rt *rdma.Runtime) Config {
	set(&c.Queue, defaultQueue)
	c.Backoff = c.Backoff.WithDefaults()
	if c.Limiter == nil {
		c.Limiter = LimiterOf(rt)
	}
	if c.Permanent == nil {
		c.Permanent = Permanent
	}
	return c
}

// WithDefaults is b with its defaults in place of what is not positive.
func (b Backoff) WithDefaults() Backoff {
	set(&b.First, defaultFirst)
	set(&b.Most, defaultMost)
	set(&b.Stable, defaultStable)
	return b
}

// Restarts reports whether the pause after a connection is First again. used: it has done what it
// was made for, or has ended in order.
func (b Backoff) Restarts(up time.Duration, used bool) bool { return used || up >= b.Stable }

// Longest is the longest pause that may come after so many earlier pauses: First, doubled each
// time, up to Most.
func (b Backoff) Longest(before int) time.Duration {
	if before < 32 && b.First < b.Most>>before {
		return b.First << before
	}
	return b.Most
}

func set[T ~int | ~int64](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}
