package share

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

var all = Amounts{Calls: 1600, Waiting: 1600, Streams: 1600, Watches: 1600, Memory: 1600}

// joined returns connections of an account, from so many addresses and so many from each.
func joined(a *Account, addrs, each int) (conns []*Conn) {
	for i := range addrs {
		for range each {
			c := new(Conn)
			c.Join(a, netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
			conns = append(conns, c)
		}
	}
	return conns
}

// greed makes connections take one each, in turn, until none may have more. It returns the
// resulting amounts of their addresses.
func greed(r Resource, conns ...*Conn) (has []int) {
	for more := true; more; {
		more = false
		for _, c := range conns {
			more = c.Take(r, 1) || more
		}
	}
	var last *peer
	for _, c := range conns {
		if c.peer != last {
			last = c.peer
			has = append(has, last.used[r])
		}
	}
	return has
}

// An address that takes all it can get, over many connections, gets nearly half of the resources
// that may be kept forever, and two get a third each. Of the places for calls one address may get
// nearly all. A single connection gets half of what its address may have.
func TestGreed(t *testing.T) {
	for _, c := range []struct {
		r            Resource
		addrs, conns int
		about        int
	}{{Streams, 1, 30, 700}, {Memory, 1, 30, 700}, {Calls, 1, 30, 1350}, {Streams, 2, 30, 480}, {Streams, 1, 1, 350}, {Calls, 1, 1, 1250}} {
		for _, n := range greed(c.r, joined(New(all, all, 0), c.addrs, c.conns)...) {
			if n < c.about*95/100 || n > c.about*105/100 {
				t.Errorf("one address of %d, with %d connections, has %d of %d of resource %d, want about %d",
					c.addrs, c.conns, n, all[c.r], c.r, c.about)
			}
		}
	}
}

// Whatever others have, an address that has nothing gets a place, and so do many.
func TestFloor(t *testing.T) {
	for r := range resources {
		a := New(all, all, 0)
		conns := joined(a, 60, 2)
		for i, c := range conns {
			if n := greed(r, c)[0]; n == 0 && i%2 == 0 {
				t.Fatalf("resource %d: address %d has nothing, with %v of %v taken", r, i/2, a.Taken(), all)
			}
		}
	}
}

// However few places there are: if there are two, one address does not have them all.
func TestFloorOfFew(t *testing.T) {
	for total := 2; total <= 40; total++ {
		a := New(Amounts{Calls: total, Streams: total}, Amounts{Calls: total, Streams: total}, 0)
		for _, r := range []Resource{Calls, Streams} {
			conns := joined(a, 2, 3)
			n := greed(r, conns[:3]...)[0]
			if n == 0 || !conns[3].Take(r, 1) {
				t.Errorf("resource %d: one address has %d of %d, another has nothing", r, n, total)
			}
		}
	}
}

// An address whose answers wait has at most half, and has to return to that.
func TestAnswersThatWait(t *testing.T) {
	a := New(all, all, 0)
	conns := joined(a, 1, 30)
	many := greed(Calls, conns...)[0]
	if conns[0].Exceeds() {
		t.Error("no answer waits")
	}
	conns[1].Waits(1)
	for n := many; conns[0].Exceeds(); n-- {
		if conns[0].Take(Calls, 1) {
			t.Fatalf("with %d of %d it gets more", n, all[Calls])
		}
		for _, c := range conns {
			if c.used[Calls] > 0 {
				c.Give(Calls, 1)
				break
			}
		}
	}
	if n := conns[0].peer.used[Calls]; n < 700 || n > 800 {
		t.Errorf("it has %d of %d", n, all[Calls])
	}
	conns[1].Waits(-1)
	if n := greed(Calls, conns...)[0]; n < many {
		t.Errorf("when none waits it has %d, and had %d before", n, many)
	}
}

// A connection has at most its own limit, and leaves part of its address's share to the others.
func TestConnections(t *testing.T) {
	a := New(all, Amounts{Streams: 5}, 0)
	conns := joined(a, 1, 2)
	if n := greed(Streams, conns[0])[0]; n != 5 {
		t.Errorf("a connection has %d, its limit is 5", n)
	}
	if conns[0].Take(Calls, 1) {
		t.Error("a connection has what its limit is 0 of")
	}
	a = New(all, all, 0)
	conns = joined(a, 1, 2)
	one := greed(Streams, conns[0])[0]
	if both := greed(Streams, conns...)[0]; one < 300 || both-one < 100 {
		t.Errorf("of one address the first connection has %d, and leaves %d", one, both-one)
	}
}

// Connections take, return and leave in any order. The amounts taken never exceed the total. In the
// end nothing is taken, and no address is kept.
func TestAccount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	a := New(all, all, 0)
	type part struct {
		c *Conn
		r Resource
		n int
	}
	var taken []part
	conns := joined(a, 7, 3)
	for range 20_000 {
		if len(taken) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(taken))
			p := taken[i]
			p.c.Give(p.r, p.n)
			taken[i] = taken[len(taken)-1]
			taken = taken[:len(taken)-1]
			continue
		}
		p := part{conns[random.IntN(len(conns))], Resource(random.IntN(int(resources))), 1 + random.IntN(90)}
		if p.c.Take(p.r, p.n) {
			taken = append(taken, p)
		}
		if used := a.Taken(); used[p.r] > all[p.r] {
			t.Fatalf("%v of %v is taken", used, all)
		}
	}
	for _, c := range conns {
		c.Leave()
	}
	for _, p := range taken {
		p.c.Give(p.r, p.n)
	}
	if used := a.Taken(); used != (Amounts{}) || len(a.peers) > 0 {
		t.Errorf("%v is taken, of %d addresses", used, len(a.peers))
	}
}

// The first bytes are reserved for a connection. Grants are returned in the end, but not at every
// change.
func TestPurse(t *testing.T) {
	a := New(Amounts{Memory: 10 << 20}, Amounts{Memory: 1 << 20}, 0)
	c := joined(a, 1, 1)[0]
	p := Purse{Of: c}
	for _, s := range []struct {
		waiting, more int
		may           bool
		granted       int
	}{
		{0, OwnMemory, true, 0},
		{OwnMemory, 1, true, grantStep},
		{OwnMemory, grantStep, true, grantStep},
		{OwnMemory, 2 << 20, false, grantStep}, // a connection's limit
		{OwnMemory, grantStep + 1, true, 2 * grantStep},
	} {
		if ok := p.May(s.waiting, s.more); ok != s.may || a.Taken()[Memory] != s.granted {
			t.Errorf("%d bytes besides %d: %v, %d are granted, want %+v", s.more, s.waiting, ok, a.Taken()[Memory], s)
		}
	}
	p.Requests = OwnMemory
	for waiting, granted := range map[int]int{2 * grantStep: 2 * grantStep, grantStep: 2 * grantStep} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			if p.Settle(waiting); a.Taken()[Memory] != granted {
				t.Errorf("with %d waiting %d are granted, want %d", waiting, a.Taken()[Memory], granted)
			}
		})
	}
	if p.Settle(0); a.Taken()[Memory] != 0 {
		t.Errorf("%d are granted, nothing waits, and the requests are what everyone has", a.Taken()[Memory])
	}
	if !(&Purse{}).May(1<<40, 1<<40) {
		t.Error("a client's connection has a purse")
	}
}
