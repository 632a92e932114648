package pacluster

import (
	"io"
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
	conns map[net.Conn]bool
	all   sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, l: l, to: to, conns: make(map[net.Conn]bool)}
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
	for c := range p.conns {
		if cut {
			c.Close()
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
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(c, out)
		c.Close()
	}()
	_, _ = io.Copy(out, c)
	out.Close()
	<-back
}

// A cluster whose network was in two parts is one again soon after: the members of the smaller part
// learn that they are none any more, and nobody else does.
func TestPartition(t *testing.T) {
	all := roles(t, 3)
	ways := make(map[[2]int][]*proxy)
	for i := range all {
		all[i].Dial = map[string]string{all[i].Name: all[i].Name}
	}
	health := []string{all[0].Health[0], all[1].Health[0], all[2].Health[0]}
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
	cut := func(cut bool) {
		for _, pair := range [][2]int{{0, 1}, {0, 2}} {
			for _, p := range ways[pair] {
				p.set(cut)
			}
		}
	}
	m := startAll(t, all...)
	names := []string{all[0].Name, all[1].Name, all[2].Name}
	for i := range 10 {
		m[i%3].do("where g%d", i)
	}
	cut(true)
	m[0].knows(names[0])
	m[1].knows(names[1:]...)
	m[2].knows(names[1:]...)
	for i := range 10 { // each part has them all
		for _, c := range m {
			c.do("where g%d", i)
		}
	}
	cut(false)
	m[0].want("expelled", "the larger part does not regard it as a member")
	m[0].leaves()
	again := start(t, all[0])
	for _, c := range append(m[1:3:3], again) {
		c.knows(names...)
		c.never("expelled", "it is in the larger part")
	}
	silent(m[1], m[2], again)
}
