package rpc

import (
	"net/netip"
	"sync"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// What the clients of a server share: places for calls, places for streams, and memory. Of each:
//
//   - Bound: all together have no more than total, a connection no more than its own limit.
//   - Floor: a client's address that has nothing may have what is left. A part of the total, one in
//     keepPart, is for such only.
//   - Share: one that has something may have more while that is no more than what is left for all
//     others, times patience. So with patience 1 a greedy address has half, two a third each.
//   - The connections of an address have its share between them by the same rule.
//   - Answer: what may not be had is refused at once: ErrOverloaded.
//
// Handlers that are OnLoop hold no place: nothing that others hold refuses them.

// resource is one of the things that are shared.
type resource int

const (
	callPlaces resource = iota
	streamPlaces
	memory // bytes
	resources
)

type amounts [resources]int

const keepPart = 16

// patience says how greedy one address may be while it is alone. Calls end soon, and their limit is
// often a small one that means the handlers: a single address may have nearly all of it. Streams,
// and what a client does not take, may stay for ever.
var patience = amounts{callPlaces: 16, streamPlaces: 1, memory: 1}

// shares is a server's account of it.
type shares struct {
	total amounts
	each  amounts // for a connection

	mu    sync.Mutex
	used  amounts
	peers map[netip.Addr]*peerShare
}

// peerShare is the part of an address. It is kept while the address has connections, or holds
// something: handlers may outlive their connection.
type peerShare struct {
	addr  netip.Addr
	conns int
	used  amounts
}

// connShare is the part of a connection. Its fields are under shares.mu.
type connShare struct {
	peer *peerShare
	used amounts
}

// sourceOf is what a client's connections are counted by: its address, and its network where an
// address costs nothing.
func sourceOf(peer rdma.Addr) netip.Addr {
	if peer.IB != nil {
		return netip.AddrFrom16(peer.IB.GID)
	}
	addr := peer.Addr().Unmap()
	if addr.Is6() {
		p, _ := addr.WithZone("").Prefix(64) // cannot fail
		return p.Addr()
	}
	return addr
}

// join and leave count a connection.
func (s *shares) join(c *connShare, peer rdma.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := sourceOf(peer)
	p := s.peers[addr]
	if p == nil {
		p = &peerShare{addr: addr}
		s.peers[addr] = p
	}
	p.conns++
	c.peer = p
}

func (s *shares) leave(c *connShare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.peer.conns--
	s.forget(c.peer)
}

func (s *shares) forget(p *peerShare) {
	if p.conns == 0 && p.used == (amounts{}) {
		delete(s.peers, p.addr)
	}
}

// take has c have n more of r. Not ok: it may not.
func (s *shares) take(c *connShare, r resource, n int) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.may(c, r, n) {
		return false
	}
	s.add(c, r, n)
	return true
}

// give takes it back.
func (s *shares) give(c *connShare, r resource, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(c, r, -n)
	s.forget(c.peer)
}

func (s *shares) add(c *connShare, r resource, n int) {
	s.used[r] += n
	c.peer.used[r] += n
	c.used[r] += n
}

func (s *shares) may(c *connShare, r resource, n int) bool {
	p, k := c.peer, patience[r]
	left := s.total[r] - s.used[r]
	switch {
	case c.used[r]+n > s.each[r], !fair(p.used[r], n, left, s.total[r], k):
		return false
	case p.used[r] == 0:
		return true
	}
	part := k*(p.used[r]+left-s.total[r]/keepPart)/(k+1) + 1 // what the address can come to have
	return fair(c.used[r], n, part-p.used[r], part, k)
}

// fair reports whether who has some already may have n more, of which left are free of a total.
func fair(has, n, left, total, patience int) bool {
	if has > 0 {
		left -= total / keepPart
	}
	return n <= left && has <= patience*left
}
