// Package share says what one client may have of what all clients of a server share: places for
// calls, places for streams, and memory. Nothing waits here: what may not be had is refused at
// once. Of each:
//
//   - Bound: all together have no more than a total, a connection no more than its own limit.
//   - Floor: a client's address that has nothing may have what is left. A part of the total, one in
//     sixteen, is for such only.
//   - Share: one that has something may have more while that is no more than what is left for all
//     others, times a patience. So with patience 1 a greedy address has half, two a third each.
//   - The connections of an address have its share between them by the same rule.
//
// It knows neither connections nor calls, only their numbers.
package share

import (
	"net/netip"
	"sync"
)

// Resource is one of the things that are shared.
type Resource int

// The resources.
const (
	Calls   Resource = iota // places for calls
	Streams                 // places for streams
	Memory                  // bytes
	resources
)

// Amounts is so much of each resource.
type Amounts [resources]int

// keepPart is which part of a total is for addresses that have nothing.
const keepPart = 16

// patience says how greedy one address may be while it is alone. Calls end soon, and their limit is
// often a small one that means the handlers: a single address may have nearly all of it. Streams,
// and what a client does not take, may stay for ever.
var patience = Amounts{Calls: 16, Streams: 1, Memory: 1}

// Account is what a server has to share, and who has what of it. Any goroutine.
type Account struct {
	total, each Amounts // of all connections, and of one

	mu    sync.Mutex
	used  Amounts
	peers map[netip.Addr]*peer
}

// peer is the part of an address. It is kept while the address has connections, or anything else:
// handlers may outlive their connection.
type peer struct {
	addr  netip.Addr
	conns int
	used  Amounts
}

// Conn is the part of a connection, from Join on. Any goroutine.
type Conn struct {
	of   *Account
	peer *peer
	used Amounts // of.mu
}

// New makes the account of a server: total is what all connections may have, each what one may.
func New(total, each Amounts) *Account {
	return &Account{total: total, each: each, peers: make(map[netip.Addr]*peer)}
}

// Taken is what all connections have.
func (a *Account) Taken() Amounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Join counts a connection from addr, which has nothing yet. It is called once, before the others.
func (c *Conn) Join(a *Account, addr netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.peers[addr]
	if p == nil {
		p = &peer{addr: addr}
		a.peers[addr] = p
	}
	p.conns++
	c.of, c.peer = a, p
}

// Leave says that the connection is gone. What it has, it has until it gives it back.
func (c *Conn) Leave() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.peer.conns--
	c.forgetLocked()
}

func (c *Conn) forgetLocked() {
	if p := c.peer; p.conns == 0 && p.used == (Amounts{}) {
		delete(c.of.peers, p.addr)
	}
}

// Take has the connection have n more of r. Not ok: it may not.
func (c *Conn) Take(r Resource, n int) (ok bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if !c.mayLocked(r, n) {
		return false
	}
	c.addLocked(r, n)
	return true
}

// Give takes n of r back.
func (c *Conn) Give(r Resource, n int) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.addLocked(r, -n)
	c.forgetLocked()
}

func (c *Conn) addLocked(r Resource, n int) {
	c.of.used[r] += n
	c.peer.used[r] += n
	c.used[r] += n
}

func (c *Conn) mayLocked(r Resource, n int) bool {
	a, p, k := c.of, c.peer, patience[r]
	left := a.total[r] - a.used[r]
	switch {
	case c.used[r]+n > a.each[r], !fair(p.used[r], n, left, a.total[r], k):
		return false
	case p.used[r] == 0:
		return true
	}
	part := k*(p.used[r]+left-a.total[r]/keepPart)/(k+1) + 1 // what the address can come to have
	return fair(c.used[r], n, part-p.used[r], part, k)
}

// fair reports whether who has some already may have n more, of which left are free of a total.
func fair(has, n, left, total, patience int) bool {
	if has > 0 {
		left -= total / keepPart
	}
	return n <= left && has <= patience*left
}
