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
	// the template of all attempts; a Timeout also bounds how long one attempt has its place at the
	// Limiter. An attempt begins with the address of the last connection, else with Dial.First
	Dial rdma.Dial
	// Resolve returns the address of Dial.Addr, before each attempt. nil: the device looks it up.
	// It is called off the loops, one call at a time, and may block until ctx ends; if it does not
	// return by then, or panics, the attempt has failed.
	Resolve func(ctx context.Context, addr string) (at string, err error)
	ID      rdma.IDConfig // every identifier's

	Queue int // messages that wait for a connection, or for the peer: 256. More are refused
	// no message waits for the next generation: unsent messages of a generation are reported, sends
	// while down are refused
	FailFast bool

	Backoff  Backoff
	Rand     *rand.Rand // the source of the jitter; nil: the process's
	Limiter  *Limiter   // nil: the runtime's, shared by all actors without a Limiter
	Attempts int        // the number of failures in a row that ends it; 0: unlimited
	// the time without a connection that ends it; 0: unlimited, but 10 s without an address
	GiveUp time.Duration
	// Permanent reports whether a failed attempt is not worth another. nil: the function Permanent.
	// It is called on the loop. If it panics, the actor ends, and Closed
	// has the cause.
	Permanent func(rdma.Failure) bool
	// Context ends it as DestroyID does, when it ends; Closed.Err is the context's cause. nil:
	// none.
	Context context.Context
	// Peers is set if the peer has a reconnecting actor to this node, too; then Peer is its node
	// id. If it is this node's own, or that of another actor, which has not delivered Closed, the
	// actor ends with EINVAL. With Peers, Dial.Addr may be empty: then the actor waits for the
	// peer's dials, until it is sent an Address.
	Peers *Peers
	Peer  uint64
}

// Backoff sets the pauses between attempts: a random time ("full jitter") of at most First after
// the first failure, twice that after the second, and so on up to Most. After a connection that has
// worked it begins again with First: one that has ended in order, one over which the peer has
// consumed messages (package rpc: has answered calls), and one that was up for Stable.
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
	// limit without an address, and without a connection
	defaultGiveUp  = 10 * time.Second
	defaultResolve = 10 * time.Second
)

// withDefaults fills zero fields.
func (c Config) withDefaults(rt *rdma.Runtime) Config {
	setDefault(&c.Queue, defaultQueue)
	c.Backoff = c.Backoff.WithDefaults()
	if c.Limiter == nil {
		c.Limiter = LimiterOf(rt)
	}
	if c.Permanent == nil {
		c.Permanent = Permanent
	}
	return c
}

// WithDefaults returns b with the defaults in place of fields that are not positive.
func (b Backoff) WithDefaults() Backoff {
	setDefault(&b.First, defaultFirst)
	setDefault(&b.Most, defaultMost)
	setDefault(&b.Stable, defaultStable)
	return b
}

// Restarts reports whether the pause after a connection is First again. used: the connection has
// served its purpose, or has ended in order.
func (b Backoff) Restarts(up time.Duration, used bool) bool { return used || up >= b.Stable }

// Longest returns the longest pause that may follow so many earlier pauses: First, doubled each
// time, up to Most.
func (b Backoff) Longest(before int) time.Duration {
	if before < 32 && b.First < b.Most>>before {
		return b.First << before
	}
	return b.Most
}

func setDefault[T ~int | ~int64](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}
