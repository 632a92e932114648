package pacluster

import (
	"net"
	"sync"
	"testing"
)

// proxy is a way from one member to another, which a test may cut.
type proxy struct {
	t  *testing.T
	l  net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	holds [2]bool // nothing is passed on to the member, or back
	news  *sync.Cond
	conns map[net.Conn]bool
	all   sync.WaitGroup
}

// The directions of a way.
const (
	there = iota
	back
)

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, l: l, to: to, conns: make(map[net.Conn]bool)}
	p.news = sync.NewCond(&p.mu)
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.carry(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.set(true)
		p.all.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

// set cuts the way, or makes it whole again.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.news.Broadcast()
	for c := range p.conns {
		if cut {
			c.Close()
		}
	}
}

// hold stops one direction, or lets it go on with what it has held back.
func (p *proxy) hold(direction int, hold bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds[direction] = hold
	p.news.Broadcast()
}

// copy carries one direction of a connection.
func (p *proxy) copy(to, from net.Conn, direction int) {
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		p.mu.Lock()
		for p.holds[direction] && !p.cut {
			p.news.Wait()
		}
		p.mu.Unlock()
		if _, bad := to.Write(b[:n]); err != nil || bad != nil {
			return
		}
	}
}

// keep remembers a connection, unless the way is cut.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) carry(c net.Conn) {
	defer p.drop(c)
	if !p.keep(c) {
		return
	}
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer p.drop(out)
	if !p.keep(out) {
		return
	}
	var other sync.WaitGroup
	other.Go(func() {
		p.copy(c, out, back)
		c.Close()
	})
	p.copy(out, c, there)
	out.Close()
	other.Wait()
}

// network is the network of members that the automanaged provider finds, with a way for each two.
type network map[[2]int][]*proxy

// throughProxies makes the members reach each other by ways that a test may cut.
func throughProxies(t *testing.T, all []role) network {
	t.Helper()
	ways := make(network)
	for i := range all {
		all[i].Dial = map[string]string{all[i].Name: all[i].Name}
	}
	var health []string
	for i := range all {
		health = append(health, all[i].Health[0])
	}
	for i := range all {
		all[i].Health = health[i : i+1 : i+1]
		for j := range all {
			if i == j {
				continue
			}
			link, ask := newProxy(t, all[j].Name), newProxy(t, health[j])
			all[i].Dial[all[j].Name] = link.addr()
			all[i].Health = append(all[i].Health, ask.addr())
			ways[[2]int{min(i, j), max(i, j)}] = append(ways[[2]int{min(i, j), max(i, j)}], link, ask)
		}
	}
	return ways
}

// set cuts the ways between pairs of members, or makes them whole again.
func (n network) set(cut bool, pairs ...[2]int) {
	for _, pair := range pairs {
		for _, p := range n[pair] {
			p.set(cut)
		}
	}
}

// A cluster whose network was in two parts is one again soon after: the members of the smaller part
// learn that they were removed, and no other member does.
func TestPartition(t *testing.T) {
	t.Parallel()
	all := roles(t, 3)
	ways := throughProxies(t, all)
	m := startAll(t, all...)
	names := []string{all[0].Name, all[1].Name, all[2].Name}
	for i := range 10 {
		m[i%3].do("where g%d", i)
	}
	ways.set(true, [2]int{0, 1}, [2]int{0, 2})
	m[0].knows(names[0])
	m[1].knows(names[1:]...)
	m[2].knows(names[1:]...)
	for i := range 10 { // each part has them all
		for _, c := range m {
			c.do("where g%d", i)
		}
	}
	ways.set(false, [2]int{0, 1}, [2]int{0, 2})
	m[0].want("expelled", "the larger part does not regard it as a member")
	m[0].want("shut down", "it stops")
	m[0].leaves()
	again := start(t, all[0])
	for _, c := range append(m[1:3:3], again) {
		c.knows(names...)
		c.never("expelled", "it is in the larger part")
	}
	silent(m[1], m[2], again)
}

// If only two of three members cannot reach each other, one of the two leaves while the cut lasts:
// else each would have the other's grains. It is the one whose side has the larger name.
func TestPartialCut(t *testing.T) {
	t.Parallel()
	all := roles(t, 3)
	ways := throughProxies(t, all)
	m := startAll(t, all...)
	for i := range 12 {
		m[i%3].do("where g%d", i)
	}
	leaves, stays := 0, 1
	leader := func(i int) string { return min(all[i].Name, all[2].Name) }
	if leader(0) < leader(1) || leader(0) == leader(1) && all[0].Name < all[1].Name {
		leaves, stays = 1, 0
	}
	ways.set(true, [2]int{0, 1})
	m[leaves].want("expelled", "the other one has removed it")
	m[leaves].want("shut down", "it stops")
	for _, c := range []*child{m[stays], m[2]} {
		c.knows(all[stays].Name, all[2].Name)
		c.never("expelled", "its side stays")
	}
	for i := range 12 {
		if a, b := m[stays].do("where g%d", i), m[2].do("where g%d", i); a != b {
			t.Errorf("g%d is at %s and at %s", i, a, b)
		}
	}
	m[leaves].leaves()
	silent(m[stays], m[2])
}
