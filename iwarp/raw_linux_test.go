package iwarp

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/sockets"
)

// raw is a non-blocking TCP socket that sends bytes chosen by the test.
type raw struct {
	t    testing.TB
	fd   int
	got  []byte
	over bool // FIN or reset was read
	rst  bool
}

func newRaw(t testing.TB, fd int) *raw {
	r := &raw{t: t, fd: fd}
	t.Cleanup(r.close)
	return r
}

func (r *raw) close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}

// reset closes with an RST.
func (r *raw) reset() {
	r.t.Helper()
	if err := unix.SetsockoptLinger(r.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		r.t.Fatal(err)
	}
	r.close()
}

// lose makes the socket receive nothing, as if each packet for it were lost, or lets it receive
// again. Lost packets are retransmitted, because they were not acknowledged.
func (r *raw) lose(on bool) {
	r.t.Helper()
	err := unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
	if on {
		none := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
		err = unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &none})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// rawDial connects; on loopback that is done when connect returns.
func rawDial(t testing.TB, to cmid.Addr) *raw {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := newRaw(t, fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *raw) write(b []byte) {
	r.t.Helper()
	if n, err := unix.Write(r.fd, b); err != nil || n != len(b) {
		r.t.Fatalf("raw write: %d of %d, %v", n, len(b), err)
	}
}

// read reads the available bytes.
func (r *raw) read() {
	buf := make([]byte, 4096)
	for !r.over {
		n, err := unix.Read(r.fd, buf)
		switch {
		case err == unix.EAGAIN:
			return
		case err != nil:
			r.over, r.rst = true, errors.Is(err, unix.ECONNRESET)
		case n == 0:
			r.over = true
		default:
			r.got = append(r.got, buf[:n]...)
		}
	}
}

func (r *raw) ended() bool {
	r.read()
	return r.over
}

// frame waits for an MPA frame.
func (r *raw) frame(nodes ...*node) wire.Frame {
	r.t.Helper()
	var f wire.Frame
	turns(r.t, "an MPA frame", func() bool {
		r.read()
		got, n, err := wire.ConsumeFrame(r.got)
		f, r.got = got, r.got[n:]
		return err == nil
	}, nodes...)
	return f
}

// rawListener is a TCP listener whose connections send bytes chosen by the test.
type rawListener struct {
	t  testing.TB
	fd int
	at cmid.Addr
}

func rawListen(t testing.TB) *rawListener {
	t.Helper()
	return rawListenFor(t, 16)
}

// fullListener drops SYNs until it has accepted the connection in its queue.
func fullListener(t testing.TB) (l *rawListener, at cmid.Addr) {
	t.Helper()
	l = rawListenFor(t, 0) // has room for one
	rawDial(t, l.at)
	return l, l.at
}

func rawListenFor(t testing.TB, backlog int) *rawListener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return &rawListener{t, fd, addrOf(sa)}
}

// accept waits for a connection.
func (l *rawListener) accept(nodes ...*node) *raw {
	l.t.Helper()
	fd := -1
	turns(l.t, "a TCP connection", func() bool {
		var err error
		fd, _, err = unix.Accept4(l.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return err == nil
	}, nodes...)
	return newRaw(l.t, fd)
}

// tcpEstablished is TCP_ESTABLISHED.
const tcpEstablished = 1

// tcpState returns the kernel's state of a socket, whether the loop knows of it or not.
func tcpState(t testing.TB, fd int) uint8 {
	t.Helper()
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		t.Fatal(err)
	}
	return info.State
}

// request returns an MPA Request of revision 2.
func request(private string) []byte {
	return wire.AppendFrame(nil, &wire.Frame{
		Flags: wire.FlagEnhanced, Revision: 2, Control: wire.Control{IRD: 4, ORD: 4}, Private: []byte(private),
	})
}

func addrOf(sa unix.Sockaddr) cmid.Addr { return (&instance{sys: new(sockets.Linux)}).addrOf(sa) }
