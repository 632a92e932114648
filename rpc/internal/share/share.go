// Package share divides a server's resources among its clients: places for calls, places in the
// queue of calls that wait for one, places for streams and for watches of its health, and memory.
// Each is shared by these rules:
//
//   - Bound: all connections together have at most a total, and each at most a limit.
//   - Floor: a client's address that has nothing may take from the rest. One sixteenth of the
//     total, and at least one place, is reserved for such addresses.
//   - Share: an address that has something may take more, while its usage is at most a factor, the
//     patience, times the rest left for all others. So with patience 1 a greedy address gets half
//     of the total, and two get a third each.
//   - While answers of an address wait for it, the factor for its calls is 1.
//   - The connections of an address share its part by the same rules.
//
// The package handles numbers only, neither connections nor calls.
package share

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Resource is one of the things that are shared.
type Resource int

// The resources.
const (
	Calls   Resource = iota // places for calls
	Waiting                 // places for calls that wait for one of those
	Streams                 // places for streams
	Watches                 // places for streams that watch the server's health
	Memory                  // bytes
	resources
)

// Amounts has an amount of each resource.
type Amounts [resources]int

// patience limits the part of a single address while it is alone. Calls end soon, and their limit
// is often a small one, meant for the handlers: a single address may have nearly all of it, also in
// their queue. Streams, and answers that a client does not take, may stay forever.
var patience = Amounts{Calls: 16, Waiting: 16, Streams: 1, Watches: 1, Memory: 1}

// Account has a server's resources and their usage by each client. Any goroutine may use it. It
// counts without fairshare.Shares: each call counts at three levels, and pointers are faster.
type Account struct {
	total, each Amounts       // of all connections, and of one
	longest     time.Duration // longest wait of a call for a place

	mu      sync.Mutex
	used    Amounts
	peers   map[netip.Addr]*peer
	queue   list    // all calls that wait for a place
	turns   [2]line // addresses with calls that wait: those without a place, and the others
	joined  uint64  // number of the last address that has joined a line
	watched bool    // Expired will be called
}

// peer has the usage of the connections of an address. It is kept while the address has connections
// or resources, because handlers may outlive their connection.
type peer struct {
	addr  netip.Addr
	conns int
	used  Amounts
	turns []*Conn      // connections with calls that wait for a place, in the order of their turns
	turn  turn         // among the addresses
	waits atomic.Int64 // places for calls whose answers wait for the client
}

// Conn has the usage of a connection, from Join on. Any goroutine may use it.
type Conn struct {
	of    *Account
	peer  *peer
	used  Amounts // of.mu
	queue list    // calls that wait for a place; of.mu
}

// New makes the account of a server: total limits all connections together, each limits one. A call
// waits for a place no longer than longest.
func New(total, each Amounts, longest time.Duration) *Account {
	return &Account{total: total, each: each, longest: longest, peers: make(map[netip.Addr]*peer), queue: list{in: 1}}
}

// Taken returns the usage of all connections.
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

// Leave is called when the connection is gone. Its usage remains until Give.
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

// Take grants the connection n more of r. Not ok: it may not have them.
func (c *Conn) Take(r Resource, n int) (ok bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if !c.peer.mayLocked(c.of, r, n) || !c.mayLocked(r, n) {
		return false
	}
	c.addLocked(r, n)
	return true
}

// Give returns n of r to the Account.
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
// may have during that time.
func (c *Conn) Exceeds() bool {
	if c.peer.waits.Load() == 0 {
		return false
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	total := c.of.total[Calls]
	return !isFair(c.peer.used[Calls]-1, 1, total-c.of.used[Calls]+1, total, 1)
}

func (c *Conn) addLocked(r Resource, n int) {
	had := c.peer.used[r] > 0
	c.of.used[r] += n
	c.peer.used[r] += n
	c.used[r] += n
	if has := c.peer.used[r] > 0; r == Calls && has != had && c.peer.turn.in != nil {
		c.of.joinLineLocked(c.peer)
	}
}

// mayLocked reports whether the address may have n more.
func (p *peer) mayLocked(a *Account, r Resource, n int) bool {
	k := patience[r]
	if r == Calls && p.waits.Load() > 0 {
		k = 1
	}
	return isFair(p.used[r], n, a.total[r]-a.used[r], a.total[r], k)
}

// mayLocked reports whether the connection may have n more, if its address may.
func (c *Conn) mayLocked(r Resource, n int) bool {
	a, p, k := c.of, c.peer, patience[r]
	switch {
	case c.used[r]+n > a.each[r]:
		return false
	case p.used[r] == 0:
		return true
	}
	// the address's possible total
	part := k*(p.used[r]+a.total[r]-a.used[r]-fairshare.Kept(a.total[r]))/(k+1) + 1
	return isFair(c.used[r], n, part-p.used[r], part, k)
}

// isFair calls fairshare.Fair with the part of a total that is kept.
func isFair(has, n, left, total, patience int) bool {
	return fairshare.Fair(has, n, left, fairshare.Kept(total), patience)
}
