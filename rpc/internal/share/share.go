// Package share decides how much one client may have of what all clients of a server share: places
// for calls, places for streams, and memory. Nothing waits here: what a client may not have is
// refused at once. Each of the three is shared by these rules:
//
//   - Bound: all connections together have no more than a total, and each no more than a limit.
//   - Floor: a client's address that has nothing may have what is left. One sixteenth of the total,
//     and at least one place, is reserved for such addresses.
//   - Share: an address that has something may have more, as long as what it has is no more than a
//     factor, the patience, times what is left for all others. So with patience 1 a greedy address
//     gets half of the total, and two get a third each.
//   - While answers of an address wait for it, the factor for its calls is 1.
//   - The connections of an address share what it may have by the same rules.
//
// It knows neither connections nor calls, only their numbers.
package share

import (
	"net/netip"
	"sync"
	"sync/atomic"
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

// kept is how much of a total is for addresses that have nothing.
func kept(total int) int { return max(total/16, 1) }

// patience says how greedy one address may be while it is alone. Calls end soon, and their limit is
// often a small one that means the handlers: a single address may have nearly all of it. Streams,
// and what a client does not take, may stay for ever.
var patience = Amounts{Calls: 16, Streams: 1, Memory: 1}

// Account is what a server has to share, and how much of it everybody has. Any goroutine.
type Account struct {
	total, each Amounts // of all connections, and of one

	mu    sync.Mutex
	used  Amounts
	peers map[netip.Addr]*peer
}

// peer is what the connections of an address have. It is kept while the address has connections or
// anything else, because handlers may outlive their connection.
type peer struct {
	addr  netip.Addr
	conns int
	used  Amounts
	waits atomic.Int64 // places for calls whose answers wait for the client
}

// Conn is what a connection has, from Join on. Any goroutine.
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

// Leave says that the connection is gone. It keeps what it has until Give.
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

// Take gives the connection n more of r. Not ok: it may not have them.
func (c *Conn) Take(r Resource, n int) (ok bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if !c.mayLocked(r, n) {
		return false
	}
	c.addLocked(r, n)
	return true
}

// Give gives n of r back to the Account.
func (c *Conn) Give(r Resource, n int) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.addLocked(r, -n)
	c.forgetLocked()
}

// Waits counts n more answers that wait until their client takes others. They have places for
// calls.
func (c *Conn) Waits(n int) { c.peer.waits.Add(int64(n)) }

// Exceeds reports whether answers wait for the address, and it has more places for calls than it
// may have meanwhile.
func (c *Conn) Exceeds() bool {
	if c.peer.waits.Load() == 0 {
		return false
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	total := c.of.total[Calls]
	return !fair(c.peer.used[Calls]-1, 1, total-c.of.used[Calls]+1, total, 1)
}

func (c *Conn) addLocked(r Resource, n int) {
	c.of.used[r] += n
	c.peer.used[r] += n
	c.used[r] += n
}

func (c *Conn) mayLocked(r Resource, n int) bool {
	a, p, k := c.of, c.peer, patience[r]
	if r == Calls && p.waits.Load() > 0 {
		k = 1
	}
	left := a.total[r] - a.used[r]
	switch {
	case c.used[r]+n > a.each[r], !fair(p.used[r], n, left, a.total[r], k):
		return false
	case p.used[r] == 0:
		return true
	}
	k = patience[r]
	part := k*(p.used[r]+left-kept(a.total[r]))/(k+1) + 1 // what the address can come to have
	return fair(c.used[r], n, part-p.used[r], part, k)
}

// fair reports whether one that has so much already may have n more, if left are free of a total.
func fair(has, n, left, total, patience int) bool {
	if has > 0 {
		left -= kept(total)
	}
	return n <= left && has <= patience*left
}
