package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/enum"
	"github.com/rdmactor/rdmactor/internal/optional"
)

// PoolConfig configures a Client of several servers. Zero fields have their defaults.
type PoolConfig struct {
	// ClientConfig is that of all its connections and calls. MaxCalls is per connection; MaxStreams
	// and Memory are for all.
	ClientConfig
	// Balance chooses the server of a call among those that are connected and not ejected.
	Balance Balance
	// Subset is the number of servers to which this client connects: 0, all. Each client draws its
	// own, so that many clients of many servers need few connections, evenly spread. A server that
	// is gone is replaced, and the others are kept.
	Subset int
	// Eject is how many calls of a server may fail one after the other, by their deadlines or with
	// ErrInternal, before it gets no calls for EjectFor (10 s; after
	// the nth ejection in a row n times as long, up to ten times), or answers a further attempt
	// (Hedge). 0: 5. Negative: never. A server that refuses with ErrOverloaded gets no calls for
	// 100 ms. At most half of the servers that are connected and serve are ejected at any time.
	Eject    int
	EjectFor time.Duration
	// SlowStart is the time in which a server's share grows from a tenth to the whole, after it was
	// connected or ejected, and after each report that it serves again: 10 s. Negative: none. Not
	// for ByKey.
	SlowStart time.Duration
	// Hedge makes a further attempt at another server whenever a call of an Idempotent method is
	// not answered for this time, up to three in all. The first answer counts, and the other
	// attempts are cancelled. 0: never. Choose a time that few calls take (their 95th percentile):
	// further attempts count as repetitions (Retry).
	Hedge time.Duration
}

// Balance is how a pool chooses the server of a call.
type Balance uint8

const (
	// LeastLoaded chooses of three random servers the one with the fewest calls in flight from this
	// client. One that has answered much slower in the last seconds, or does not answer at all, is
	// avoided.
	LeastLoaded Balance = iota
	// RoundRobin chooses one after the other.
	RoundRobin
	// ByKey chooses by rendezvous hashing of the call's key (WithKey): the same key goes to the
	// same server while that is there, from every client that has the same servers. Calls without
	// a key go to the least loaded.
	ByKey
)

var balances = [...]string{"least loaded", "round robin", "by key"}

func (b Balance) String() string { return enum.At(balances[:], b, "balance %d") }

// MarshalText returns String's text.
func (b Balance) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// overloadedFor is how long a server that has refused a call gets no further ones.
const overloadedFor = 100 * time.Millisecond

type keyOfCall struct{}

// WithKey returns a context whose calls have a key, for a pool with ByKey.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfCall{}, hashOf(key))
}

// NewPool makes a client of the servers that a resolver finds, with one connection to each. The
// first call, or Connect, begins to connect. A call that was certainly not executed, because its
// server drained or its connection was lost, is made again at another server immediately; other
// repetitions are Retry's, and go to another server as well. Interceptors do not see the choice:
// Info.Peer is zero.
func NewPool(rt *rdma.Runtime, servers Resolver, configs ...PoolConfig) *Client {
	cfg := optional.Value(configs)
	c := newClient(rt, cfg.ClientConfig)
	if cfg.Eject = max(cfg.Eject, -1); cfg.Eject == 0 {
		cfg.Eject = 5
	}
	if cfg.SlowStart == 0 {
		cfg.SlowStart = 10 * time.Second
	}
	cfg.EjectFor = positiveOr(cfg.EjectFor, 10*time.Second)
	c.servers, c.pool, c.seed = servers, &cfg, rt.Scheduler().Uint64()
	c.name = "the pool's servers"
	if of, ok := servers.(fmt.Stringer); ok {
		c.name = of.String()
	}
	return c
}

// setServers takes the servers' addresses from the resolver.
func (c *Client) setServers(addrs []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.last {
		return
	}
	c.resolved = true
	defer c.changedLocked()
	switch {
	case err != nil && len(addrs) == 0:
		c.why = fmt.Errorf("resolving %s: %w", c.name, err)
		return
	case len(addrs) == 0:
		c.why = errors.New("there is no server")
	}
	addrs = c.chooseSubset(addrs)
	old := c.endpoints
	for _, e := range old {
		if _, found := slices.BinarySearch(addrs, e.addr); found {
			continue
		}
		for i, l := range e.retireLocked() {
			switch {
			case l == nil:
			case i == 0:
				l.sendToActor(&leave{})
			default:
				l.sendToActor(&hangUp{ErrClosed})
			}
		}
	}
	all := make([]*endpoint, len(addrs))
	for i, addr := range addrs {
		at, found := slices.BinarySearchFunc(old, addr, func(e *endpoint, addr string) int { return strings.Compare(e.addr, addr) })
		if found {
			all[i] = old[at]
		} else {
			all[i] = c.newEndpointLocked(addr, 0)
		}
	}
	c.endpoints = all
}

// chooseSubset returns the addresses of the servers that c connects to, in order and each once.
func (c *Client) chooseSubset(addrs []string) []string {
	addrs = slices.Clone(addrs)
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	if n := c.pool.Subset; n > 0 && n < len(addrs) {
		slices.SortFunc(addrs, func(a, b string) int {
			return cmp.Compare(mixBits(c.seed^hashOf(b)), mixBits(c.seed^hashOf(a)))
		})
		addrs = addrs[:n]
		slices.Sort(addrs)
	}
	return addrs
}

// ServerInfo is a server of a Client.
type ServerInfo struct {
	Addr      string    // as the resolver reports it
	Connected time.Time // since when; zero: it is not connected
	InFlight  int       // calls that it has not answered
	Serving   bool      // it is connected, and serves as far as is known (ServiceConfig.Health)
	Ejected   time.Time // until then it gets no calls; zero: it is not ejected
	Err       error     // why the last connection, or attempt to connect, ended; nil: none has
}

// Servers reports on the servers, ordered by address. Any goroutine. inspect.Rows shows it.
func (c *Client) Servers() []ServerInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	infos := make([]ServerInfo, len(c.endpoints))
	for i, e := range c.endpoints {
		infos[i] = ServerInfo{Addr: e.addr, Err: e.why}
		if e.link != nil {
			infos[i].Connected, infos[i].InFlight, infos[i].Serving = e.upSince, int(e.link.inUse.Load()), e.serves
		}
		if time.Now().Before(e.ejectedUntil) {
			infos[i].Ejected = e.ejectedUntil
		}
	}
	return infos
}
