package beside

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// way is where a node is dialled: its connections can be cut, and are made again.
type way struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	conns map[net.Conn]bool
	all   sync.WaitGroup
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{l: l, to: to, conns: make(map[net.Conn]bool)}
	w.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.all.Go(func() { w.carry(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.cut()
		w.all.Wait()
	})
	return w
}

func (w *way) addr() string { return w.l.Addr().String() }

// cut ends all connections, with a reset.
func (w *way) cut() (ended int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	return len(w.conns) / 2
}

func (w *way) keep(c net.Conn, keep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if keep {
		w.conns[c] = true
		return
	}
	c.Close()
	delete(w.conns, c)
}

func (w *way) carry(in net.Conn) {
	w.keep(in, true)
	defer w.keep(in, false)
	out, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	w.keep(out, true)
	defer w.keep(out, false)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		in.Close()
	})
	_, _ = io.Copy(out, in)
	out.Close()
	back.Wait()
}

func split(t *testing.T, addr string) (host string, port int) {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	return host, port
}
