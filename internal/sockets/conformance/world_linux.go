package conformance

import (
	"bytes"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Combinations of a socket's readiness.
const (
	nothing  eventloop.Events = 0
	writable                  = eventloop.Writable
	both                      = eventloop.Readable | eventloop.Writable
	over                      = both | eventloop.Hangup
	broken                    = over | eventloop.Error
	unused                    = eventloop.Writable | eventloop.Hangup
)

// most bounds how often a world waits for one thing. Linux's Wait takes a millisecond or so.
const most = 30000

// world is a Pair in one test.
type world struct {
	*testing.T
	*Pair
	open map[*end]bool
}

func newWorld(t *testing.T, p *Pair) *world {
	w := &world{T: t, Pair: p, open: make(map[*end]bool)}
	t.Cleanup(func() {
		for e := range w.open {
			_ = e.p.Close(e.fd)
		}
	})
	return w
}

// end is a socket, until the test closes it.
type end struct {
	w  *world
	p  Process
	fd int
}

func (w *world) addEnd(p Process, fd int, err error) *end {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	e := &end{w, p, fd}
	w.open[e] = true
	return e
}

func (w *world) socket(p Process, domain, typ int) *end {
	w.Helper()
	fd, err := p.Socket(domain, typ)
	return w.addEnd(p, fd, err)
}

// newTCP makes a stream socket of Address's family.
func (w *world) newTCP(p Process) *end {
	w.Helper()
	return w.socket(p, familyOf(w.Address), unix.SOCK_STREAM)
}

// must fails the test if err is not nil.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// want checks an errno.
func (w *world) want(what string, err, want error) {
	w.Helper()
	if err != want {
		w.Fatalf("%s: %v, want %v", what, err, want)
	}
}

// until waits until done.
func (w *world) until(what string, done func() bool) {
	w.Helper()
	for range most {
		if done() {
			return
		}
		if !w.Wait() && !done() {
			w.Fatalf("%s: it never happens", what)
		}
	}
	w.Fatalf("%s: it has not happened", what)
}

// awaitReady waits until e is ready for exactly want.
func (e *end) awaitReady(what string, want eventloop.Events) {
	e.w.Helper()
	got := e.p.Ready(e.fd)
	for range most {
		if got == want {
			return
		}
		more := e.w.Wait()
		if got = e.p.Ready(e.fd); !more && got != want {
			break
		}
	}
	e.w.Fatalf("%s: ready for %v, want %v", what, got, want)
}

// staysReady checks for a while that e is ready for exactly want.
func (e *end) staysReady(what string, want eventloop.Events) {
	e.w.Helper()
	for range 20 {
		if got := e.p.Ready(e.fd); got != want {
			e.w.Fatalf("%s: ready for %v, want %v", what, got, want)
		}
		e.w.Wait()
	}
}

// letSettle lets pending activity proceed.
func (w *world) letSettle() {
	for range 20 {
		w.Wait()
	}
}

// close closes e.
func (e *end) close() {
	e.w.Helper()
	delete(e.w.open, e)
	e.w.must(e.p.Close(e.fd))
}

// abort closes e with a reset.
func (e *end) abort() {
	e.w.Helper()
	e.w.must(e.p.SetLinger(e.fd, &unix.Linger{Onoff: 1}))
	e.close()
}

func (e *end) shutdown(how int) {
	e.w.Helper()
	e.w.must(e.p.Shutdown(e.fd, how))
}

// bind binds e and returns its address.
func (e *end) bind(at netip.AddrPort) netip.AddrPort {
	e.w.Helper()
	e.w.must(e.p.Bind(e.fd, toSockaddr(at)))
	return e.localAddr()
}

func (e *end) localAddr() netip.AddrPort {
	e.w.Helper()
	sa, err := e.p.Local(e.fd)
	e.w.must(err)
	return addrPort(sa)
}

func (e *end) peerAddr() netip.AddrPort {
	e.w.Helper()
	sa, err := e.p.Peer(e.fd)
	e.w.must(err)
	return addrPort(sa)
}

func (e *end) setOption(level, opt, value int) {
	e.w.Helper()
	e.w.must(e.p.SetOption(e.fd, level, opt, value))
}

func (e *end) setReuseAddr() { e.w.Helper(); e.setOption(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }

func (e *end) getOption(level, opt int) int {
	e.w.Helper()
	v, err := e.p.Option(e.fd, level, opt)
	e.w.must(err)
	return v
}

// takeError takes SO_ERROR.
func (e *end) takeError() error {
	e.w.Helper()
	if v := e.getOption(unix.SOL_SOCKET, unix.SO_ERROR); v != 0 {
		return unix.Errno(v)
	}
	return nil
}

// newListener makes a listener on Address.
func (w *world) newListener(backlog int) (*end, netip.AddrPort) {
	w.Helper()
	l := w.newTCP(w.Server)
	at := l.bind(netip.AddrPortFrom(w.Address, 0))
	w.must(l.p.Listen(l.fd, backlog))
	return l, at
}

// connect starts to connect e to at.
func (e *end) connect(at netip.AddrPort) {
	e.w.Helper()
	if err := e.p.Connect(e.fd, toSockaddr(at)); err != nil {
		e.w.want("connect", err, unix.EINPROGRESS)
	}
}

// dial connects to at.
func (w *world) dial(at netip.AddrPort) *end {
	w.Helper()
	c := w.newTCP(w.Client)
	c.bind(netip.AddrPortFrom(w.Source, 0))
	c.connect(at)
	return c
}

func (l *end) accept() *end {
	l.w.Helper()
	l.awaitReady("a connection has come", eventloop.Readable)
	fd, _, err := l.p.Accept(l.fd)
	return l.w.addEnd(l.p, fd, err)
}

// connectedPair makes a connection.
func (w *world) connectedPair() (client, server *end) {
	w.Helper()
	l, at := w.newListener(16)
	c := w.dial(at)
	s := l.accept()
	c.awaitReady("the handshake is over", writable)
	l.close()
	return c, s
}

// write writes b, and waits for room as long as it must.
func (e *end) write(b []byte) {
	e.w.Helper()
	e.w.until("all is written", func() bool {
		n, err := e.p.Send(e.fd, [][]byte{b}, 0)
		if err != nil && err != unix.EAGAIN {
			e.w.Fatal(err)
		}
		b = b[max(n, 0):]
		return len(b) == 0
	})
}

// read reads want.
func (e *end) read(want []byte) {
	e.w.Helper()
	got := make([]byte, 0, len(want))
	e.w.until("all has come", func() bool {
		n, err := e.p.Recv(e.fd, got[len(got):cap(got)])
		if err != nil && err != unix.EAGAIN {
			e.w.Fatal(err)
		}
		got = got[:len(got)+max(n, 0)]
		return len(got) == len(want)
	})
	if !bytes.Equal(got, want) {
		e.w.Fatalf("read %d bytes that are not those that were sent", len(want))
	}
}

// recv calls recv(2) once, which must return want: nil stands for the end of the stream.
func (e *end) recv(what string, want error) {
	e.w.Helper()
	n, err := e.p.Recv(e.fd, make([]byte, 64))
	if err != want || err == nil && n != 0 {
		e.w.Fatalf("%s: recv returns %d, %v, want %v", what, n, err, want)
	}
}

// send sends a byte with send(2), which must return want.
func (e *end) send(what string, want error) {
	e.w.Helper()
	if _, err := e.p.Send(e.fd, [][]byte{{1}}, 0); err != want {
		e.w.Fatalf("%s: send returns %v, want %v", what, err, want)
	}
}

// fillBuffer writes until there is no room, even after a while, and returns the bytes written.
func (e *end) fillBuffer() (sent []byte) {
	e.w.Helper()
	b := patternBytes(1 << 16)
	idle := 0
	for range most {
		n, err := e.p.Send(e.fd, [][]byte{b}, 0)
		switch {
		case err == nil:
			sent = append(sent, b[:n]...)
			idle = 0
		case err != unix.EAGAIN:
			e.w.Fatal(err)
		case e.p.Ready(e.fd)&eventloop.Writable != 0:
			idle = 0 // room was made just now
		case !e.w.Wait() || idle == 50:
			return sent
		default:
			idle++
		}
	}
	e.w.Fatalf("after %d bytes it is not full", len(sent))
	return nil
}

// patternBytes returns n bytes.
func patternBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func toSockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch s := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(s.Addr), uint16(s.Port))
	}
	return netip.AddrPort{}
}
