package beside

import (
	"net"
	"strconv"
	"sync"
	"testing"
)

// way is where a node is dialled: its connections can be cut, and are made again.
type way struct {
	l    net.Listener
	over chan struct{} // closed when the test ends

	mu    sync.Mutex
	to    string
	conns map[net.Conn]bool
	lost  map[net.Conn]bool // nothing is forwarded, and the end goes unnoticed
	all   sync.WaitGroup
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{l: l, over: make(chan struct{}), to: to, conns: make(map[net.Conn]bool), lost: make(map[net.Conn]bool)}
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
		close(w.over)
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

// lose acts as a power cut: the present connections are silent. Others lead elsewhere.
func (w *way) lose(to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = to
	for c := range w.conns {
		w.lost[c] = true
	}
}

// copy carries one direction of a connection until it ends, or the test does if it is lost.
func (w *way) copy(to, from net.Conn) {
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		w.mu.Lock()
		lost := w.lost[from]
		w.mu.Unlock()
		if lost {
			<-w.over
			return
		}
		if _, bad := to.Write(b[:n]); err != nil || bad != nil {
			return
		}
	}
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
	w.mu.Lock()
	addr := w.to
	w.mu.Unlock()
	out, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	w.keep(out, true)
	defer w.keep(out, false)
	var back sync.WaitGroup
	back.Go(func() {
		w.copy(in, out)
		in.Close()
	})
	w.copy(out, in)
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
