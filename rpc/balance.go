package rpc

import (
	"context"
	"hash/fnv"
	"slices"
	"time"
)

// choice is how the server of a call is chosen. Client.mu is locked while it is used.
type choice struct {
	c   *Client
	now time.Time
	not avoided
	// whether the servers may include not, and those that are ejected
	again, ejected bool
}

// avoided are servers that a call was made at already: it is rather made at others.
type avoided [mostHedges + 1]*endpoint

func (a *avoided) has(e *endpoint) bool { return slices.Contains(a[:], e) }

// chooseLocked returns the connection for a call, if possible to another server than those in not:
// rather to one that is ejected. nil: there is no connection.
func (c *Client) chooseLocked(ctx context.Context, not avoided) *link {
	switch {
	case c.connected == 0:
		return nil
	case len(c.endpoints) == 1:
		return c.endpoints[0].link
	}
	ch := choice{c: c, now: time.Now(), not: not}
	for n := range 4 {
		ch.again, ch.ejected = n&2 != 0, n&1 != 0
		if e := ch.chooseEndpoint(ctx); e != nil {
			return e.link
		}
	}
	return nil
}

// mayCall reports whether a server may get the call.
func (ch *choice) mayCall(e *endpoint) bool {
	return e.serves && (ch.again || !ch.not.has(e)) && (ch.ejected || !ch.now.Before(e.ejectedUntil))
}

// chooseEndpoint chooses among the servers that may get the call. nil: none may.
func (ch *choice) chooseEndpoint(ctx context.Context) *endpoint {
	switch ch.c.pool.Balance {
	case RoundRobin:
		return ch.nextInTurn()
	case ByKey:
		if key, ok := ctx.Value(keyOfCall{}).(uint64); ok {
			return ch.byKey(key)
		}
	}
	return ch.leastLoaded()
}

// choices is how many random servers are compared. Of two, both would often be bad ones where
// there are only a few.
const choices = 3

// leastLoaded returns the least loaded of some random servers.
func (ch *choice) leastLoaded() (best *endpoint) {
	var compared [choices]*endpoint
	for i := range compared {
		e := ch.randomOther(compared[:i])
		if e == nil {
			break
		}
		compared[i] = e
		if best == nil || ch.isBetter(e, best) {
			best = e
		}
	}
	return best
}

// slower is how many times longer the calls of a server must take for it to get none, however few
// it has in flight. Smaller differences are those of methods and of chance.
const slower = 4

// isBetter reports whether a should rather get the call than b: it answers much faster, or has
// fewer calls in flight, in proportion to its share.
func (ch *choice) isBetter(a, b *endpoint) bool {
	n, m := a.link.inUse.Load(), b.link.inUse.Load()
	la, lb := a.link.latency.expectedLatency(ch.now), b.link.latency.expectedLatency(ch.now)
	if la > slower*lb || lb > slower*la {
		return la < lb
	}
	return float64(n+1)/ch.startShare(a) < float64(m+1)/ch.startShare(b)
}

// startShare returns a weight that grows from slowest to 1 while a server starts slowly.
func (ch *choice) startShare(e *endpoint) float64 {
	// one that is ejected has yet to start
	since, within := max(ch.now.Sub(e.slowSince), 0), ch.c.pool.SlowStart
	if since >= within {
		return 1
	}
	return slowest + (1-slowest)*float64(since)/float64(within)
}

// slowest is the share with which a server starts.
const slowest = 0.1

// nextInTurn returns the next server. One that starts slowly is passed over sometimes.
func (ch *choice) nextInTurn() (passed *endpoint) {
	all := ch.c.endpoints
	for range all {
		ch.c.turn++
		e := all[ch.c.turn%uint(len(all))]
		if !ch.mayCall(e) {
			continue
		}
		if ch.startShare(e) >= float64(ch.c.rt.Scheduler().Uint64()>>11)/(1<<53) {
			return e
		}
		passed = e
	}
	return passed
}

// byKey returns the server of a key.
func (ch *choice) byKey(key uint64) (best *endpoint) {
	var most uint64
	for _, e := range ch.c.endpoints {
		if h := mixBits(key ^ e.hash); ch.mayCall(e) && (best == nil || h > most) {
			best, most = e, h
		}
	}
	return best
}

// randomOther returns a random server that is not among those compared. nil: there is none.
func (ch *choice) randomOther(compared []*endpoint) *endpoint {
	all := ch.c.endpoints
	n := uint64(len(all))
	if n == 0 {
		return nil
	}
	at := ch.c.rt.Scheduler().Uint64() % n
	for i := range n {
		if e := all[(at+i)%n]; ch.mayCall(e) && !slices.Contains(compared, e) {
			return e
		}
	}
	return nil
}

// hashOf returns a hash that is the same in all programs.
func hashOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// mixBits spreads a difference in one bit of h over all bits of the result: the finalizer of
// MurmurHash3.
func mixBits(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
