package limits

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Strangers bounds the number of unauthenticated peers. The zero Strangers is empty. Any goroutine.
//
// It counts them by address and by network, IPv4 /24 or IPv6 /48, because one attacker may control
// all addresses of a network. Addresses have fair shares (package fairshare), and a network has at
// most three quarters. If there is no place for a newcomer, the oldest handshake that waits for its
// peer gives way, because it is the least likely to be honest:
//
//   - one of the newcomer's own address or network, if that has more than a quarter of all places
//   - else one of any network that has more than a sixteenth
//   - else, if the newcomer's own has at most that, the oldest of all: a flood from any number of
//     networks only shortens the time that a peer has to answer
//
// One that gave way counts until it leaves, because a device may take minutes to destroy its
// identifier. While there are as many of those as places, none gives way.
type Strangers struct {
	mu       sync.Mutex
	evicted  int       // strangers that gave way and have not left
	order    list.List // of *Stranger, the oldest first
	near     fairshare.Shares[netip.Addr]
	networks fairshare.Shares[netip.Prefix]
}

// Stranger is a peer that is not authenticated yet.
type Stranger struct {
	From netip.Addr // its address; of IPv6 the network of 64 bits
	// Evict ends its handshake. It is called once at most, on any goroutine, and must not block.
	Evict func()

	network netip.Prefix
	place   *list.Element // nil: none
	evicted bool          // it gave way and has not left
	waits   bool          // the handshake waits for the peer
	since   time.Time     // start of its first wait
}

const (
	// Grace is how long a peer has to answer before its handshake may give way: a round trip, in
	// most networks.
	Grace = 100 * time.Millisecond
	// A network that has more than 1/large of all places gives way first. An address or a network
	// that has more than 1/greedy of them gets no place of another.
	large, greedy = 16, 4
	// elsewhere: 1/elsewhere of all places are never of the same network as the others.
	elsewhere = 4
)

// Enter takes one of most places for s. If another stranger gives way, Enter returns it, and the
// caller must call its Evict. ok is false if there is no place.
func (t *Strangers) Enter(s *Stranger, most int, now time.Time) (evicted *Stranger, ok bool) {
	s.network = networkOf(s.From)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.near.May(s.From, most) || t.networks.Has(s.network) >= most-most/elsewhere {
		if t.evicted >= most {
			return nil, false
		}
		if evicted = t.oldestToEvict(s, most, now); evicted == nil {
			return nil, false
		}
		t.remove(evicted)
		evicted.evicted = true
		t.evicted++
	}
	t.near.Take(s.From)
	t.networks.Take(s.network)
	s.place = t.order.PushBack(s)
	return evicted, true
}

// oldestToEvict returns the stranger that gives way to s; nil: none.
func (t *Strangers) oldestToEvict(s *Stranger, most int, now time.Time) (first *Stranger) {
	gives := func(o *Stranger) bool { return t.networks.Has(o.network) > most/large }
	switch {
	case t.near.Has(s.From) > most/greedy:
		gives = func(o *Stranger) bool { return o.From == s.From }
	case t.networks.Has(s.network) > most/greedy:
		gives = func(o *Stranger) bool { return o.network == s.network }
	}
	small := t.networks.Has(s.network) <= most/large
	for e := t.order.Front(); e != nil; e = e.Next() {
		o := e.Value.(*Stranger)
		switch {
		case !o.waits || now.Sub(o.since) < Grace:
		case gives(o):
			return o
		case first == nil && small:
			first = o
		}
	}
	return first
}

// Wait records that the handshake waits for the peer.
func (t *Strangers) Wait(s *Stranger, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.waits = true; s.since.IsZero() { // a peer that goes on in small steps gains no time
		s.since = now
	}
}

// Compute records that this side computes the next step. Until the next Wait the handshake does not
// give way, so Enter's bound applies to the queued steps, too.
func (t *Strangers) Compute(s *Stranger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.waits = false
}

// Leave forgets a stranger, whose identifier has ended or whose peer is authenticated.
func (t *Strangers) Leave(s *Stranger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(s)
	if s.evicted {
		s.evicted = false
		t.evicted--
	}
}

func (t *Strangers) remove(s *Stranger) {
	if s.place != nil {
		t.order.Remove(s.place)
		s.place = nil
		t.near.Free(s.From)
		t.networks.Free(s.network)
	}
}

// networkOf returns the network of a that is likely to have one owner.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 24
	if a = a.Unmap(); a.Is6() {
		bits = 48
	}
	p, _ := a.WithZone("").Prefix(bits) // of the zero address: the zero prefix
	return p
}
