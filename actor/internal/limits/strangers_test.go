package limits

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// crowded is a table with strangers, and the time.
type crowded struct {
	Strangers
	t    *testing.T
	most int
	now  time.Time
	in   map[*Stranger]bool
}

func newCrowded(t *testing.T, most int) *crowded {
	return &crowded{t: t, most: most, now: time.Unix(1, 0), in: make(map[*Stranger]bool)}
}

// enter adds a peer from a, which gets its reply and does not continue. nil: there is no place.
func (c *crowded) enter(a netip.Addr) *Stranger {
	c.t.Helper()
	s := &Stranger{From: a}
	evicted, ok := c.Enter(s, c.most, c.now)
	switch {
	case !ok && evicted != nil:
		c.t.Error("a stranger gave way to one that is refused")
	case evicted != nil && !c.in[evicted]:
		c.t.Error("a stranger gave way that had no place")
	}
	delete(c.in, evicted)
	if !ok {
		return nil
	}
	c.in[s] = true
	c.Wait(s, c.now)
	if len(c.in) > c.most {
		c.t.Errorf("%d strangers, want at most %d", len(c.in), c.most)
	}
	return s
}

func (c *crowded) leave(s *Stranger) {
	c.Leave(s)
	delete(c.in, s)
}

// of returns the number of strangers in a network.
func (c *crowded) of(p netip.Prefix) (n int) {
	for s := range c.in {
		if p.Contains(s.From) {
			n++
		}
	}
	return n
}

var (
	anywhere = netip.MustParsePrefix("0.0.0.0/0")
	honest   = netip.MustParseAddr("192.0.2.1")
)

// Before any is old enough to give way, an address has at most half of the places, and a network
// three quarters.
func TestStrangersShare(t *testing.T) {
	const most = 64
	for name, from := range map[string]func(i int) netip.Addr{
		"an address": func(int) netip.Addr { return netip.MustParseAddr("10.0.0.1") },
		"a /24":      func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) },
		"a /48": func(i int) netip.Addr {
			return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 1, byte(i >> 8), byte(i)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t, most)
			for i := range 4 * most {
				c.enter(from(i))
			}
			if n := len(c.in); n < most/4 || n > most*3/4 || name == "an address" && n > most/2 {
				t.Errorf("it has %d of %d places", n, most)
			}
			if c.enter(honest) == nil {
				t.Error("a peer from elsewhere is refused")
			}
			if name == "an address" && c.enter(netip.MustParseAddr("10.0.0.2")) == nil {
				t.Error("a peer of the same network is refused")
			}
			for s := range c.in {
				c.leave(s)
			}
			if c.order.Len() != 0 || c.near.Has(honest) != 0 || c.networks.Has(networkOf(honest)) != 0 {
				t.Error("somebody is counted when all have left")
			}
		})
	}
}

// However many addresses and networks strangers have, a peer that answers within the grace gets
// through, even 40 such peers of one address at the same time: silent strangers make room, the
// oldest first.
func TestStrangersGiveWay(t *testing.T) {
	for name, from := range map[string]func(i int) netip.Addr{
		"one address": func(int) netip.Addr { return netip.MustParseAddr("10.0.0.1") },
		"127/8": func(i int) netip.Addr {
			return netip.AddrFrom4([4]byte{127, byte(i * 7), byte(i >> 3), byte(i)})
		},
		"a /48": func(i int) netip.Addr {
			return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 1, byte(i >> 8), byte(i)})
		},
		"a /32": func(i int) netip.Addr {
			a := [16]byte{0x20, 1, 0xd, 0xb8}
			binary.BigEndian.PutUint32(a[4:], uint32(i)<<12)
			return netip.AddrFrom16(a)
		},
		"few networks": func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i % 20), byte(i)}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t, 1024)
			for i := range 1500 {
				c.enter(from(i))
			}
			c.now = c.now.Add(Grace)
			var good []*Stranger
			for i := range 40 {
				good = append(good, c.enter(honest))
				for j := range 10 { // the flood goes on
					c.enter(from(1500 + 10*i + j))
				}
			}
			for i, s := range good {
				if s == nil || !c.in[s] {
					t.Errorf("honest peer %d finds no place, or has lost it", i)
				}
			}
		})
	}
}

// A network with many places gives way before peers of networks with few, even if these are older.
func TestStrangersOfSmallNetworksStay(t *testing.T) {
	c := newCrowded(t, 64)
	old := c.enter(honest)
	c.now = c.now.Add(time.Second)
	for i := range 64 {
		c.enter(netip.AddrFrom4([4]byte{10, 0, byte(i % 4), byte(i)}))
	}
	c.now = c.now.Add(time.Second)
	for i := range 200 {
		c.now = c.now.Add(Grace / 10)
		c.enter(netip.AddrFrom4([4]byte{10, 0, byte(i % 4), byte(i)}))
		if i%10 == 0 {
			c.enter(netip.AddrFrom4([4]byte{10, 1, byte(i), 1}))
		}
	}
	if !c.in[old] {
		t.Error("a flood of other networks has cost a peer its place")
	}
}

// Which stranger gives way depends on the places of the newcomer's address and network. Of the
// candidates, it is the oldest.
func TestWhichStrangerGivesWay(t *testing.T) {
	const (
		small, large, other, greedy = "10.1.0.1", "10.2.0.1", "10.3.0.2", "10.3.0.1"
		most                        = 16
	)
	all := []string{small, large, "10.2.0.2", "10.2.0.3", other, greedy, greedy, greedy, greedy, greedy}
	var apart []string // each of a network that has no other
	for i := range most {
		a := netip.AddrFrom4([4]byte{10, 9, byte(i), 1}).String()
		if apart = append(apart, a); len(all) < most {
			all = append(all, a)
		}
	}
	for why, c := range map[string]struct {
		in           []string
		comes, gives string
	}{
		"of an address with more than a quarter: one of its own": {all, greedy, greedy},
		"of a network with more than a quarter: one of its own":  {all, "10.3.0.9", other},
		"of a network with little: one of a large one":           {all, honest.String(), large},
		"where all networks have little: the oldest of all":      {apart, honest.String(), apart[0]},
	} {
		table := newCrowded(t, most)
		var order []*Stranger
		for _, a := range c.in {
			s := table.enter(netip.MustParseAddr(a))
			if s == nil {
				t.Fatalf("%s: there is no place for %s", why, a)
			}
			order = append(order, s)
		}
		table.now = table.now.Add(Grace)
		table.enter(netip.MustParseAddr(c.comes))
		want := order[slices.Index(c.in, c.gives)]
		for _, s := range order {
			if gone := !table.in[s]; gone != (s == want) {
				t.Errorf("%s: %v has given way: %t; want the first of %s", why, s.From, gone, c.gives)
			}
		}
	}
}

// A handshake whose next step is being computed here does not give way: the bound is also that of
// the steps that are queued. Nor does one whose peer has had no time to answer.
func TestStrangersBeingComputedStay(t *testing.T) {
	const most = 16
	c := newCrowded(t, most)
	var all []*Stranger
	for i := range most {
		s := c.enter(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}))
		c.Compute(s)
		all = append(all, s)
	}
	c.now = c.now.Add(time.Hour)
	if c.enter(honest) != nil {
		t.Fatal("there are more handshakes than places")
	}
	c.Wait(all[3], c.now)
	if c.enter(honest) == nil || c.in[all[3]] {
		t.Error("a handshake has waited for its peer before, and does not give way")
	}
	if n := c.of(anywhere); n != most {
		t.Errorf("%d strangers, want %d", n, most)
	}
	fresh := newCrowded(t, most)
	for i := range most {
		fresh.enter(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}))
	}
	fresh.now = fresh.now.Add(Grace - 1)
	if fresh.enter(honest) != nil {
		t.Error("a peer gave way that had no time to answer")
	}
}

// One that gave way returns nothing twice.
func TestStrangersLeaveOnce(t *testing.T) {
	c := newCrowded(t, 1)
	a := c.enter(honest)
	c.now = c.now.Add(Grace)
	b := c.enter(honest)
	if b == nil || c.in[a] {
		t.Fatal("the older one stays")
	}
	c.Leave(a)
	if c.enter(honest) != nil {
		t.Error("there are two, want one")
	}
	c.Leave(b)
	c.Leave(b)
	if c.order.Len() != 0 || c.near.Has(honest) != 0 {
		t.Error("somebody is counted when all have left")
	}
}

// Strangers that gave way count until their identifiers have ended, which may take a device long.
func TestStrangersThatGaveWayAreBounded(t *testing.T) {
	const most = 8
	var all Strangers
	now := time.Unix(1, 0)
	from := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}) }
	var ending []*Stranger
	enter := func(i int) (ok bool) {
		now = now.Add(Grace)
		s := &Stranger{From: from(i)}
		evicted, ok := all.Enter(s, most, now)
		if evicted != nil {
			ending = append(ending, evicted)
		}
		if ok {
			all.Wait(s, now)
		}
		return ok
	}
	in := 0
	for i := range 10 * most {
		if enter(i) {
			in++
		}
	}
	if in != 2*most || len(ending) != most {
		t.Fatalf("%d strangers entered, and %d of them gave way; want %d and %d", in, len(ending), 2*most, most)
	}
	all.Leave(ending[0])
	all.Leave(ending[0])
	if !enter(1000) || enter(1001) {
		t.Error("when one of those that gave way has ended, want one more to enter")
	}
}
