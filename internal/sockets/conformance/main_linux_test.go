package conformance_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sockets"
	"github.com/rdmactor/rdmactor/internal/sockets/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// linux is this process.
type linux struct {
	sockets.Linux
	t    *testing.T
	poll int // epoll's descriptor
}

func newLinux(t *testing.T) *linux {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(poll) })
	return &linux{t: t, poll: poll}
}

// Ready asks epoll.
func (l *linux) Ready(fd int) eventloop.Events {
	if err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT}); err != nil {
		l.t.Fatal(err)
	}
	defer func() {
		if err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_DEL, fd, nil); err != nil {
			l.t.Fatal(err)
		}
	}()
	var got [1]unix.EpollEvent
	for {
		n, err := unix.EpollWait(l.poll, got[:], 0)
		switch {
		case err == unix.EINTR:
		case err != nil:
			l.t.Fatal(err)
		case n == 0:
			return 0
		default:
			return eventloop.Events(got[0].Events)
		}
	}
}

// exhaust sets the limit of descriptors to the number of open ones. Nothing else runs in this
// process.
func (l *linux) exhaust() (restore func()) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		l.t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		l.t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			l.t.Fatal(err)
		}
	}
}

// TestLinux checks the facts on loopback: they are Linux's.
func TestLinux(t *testing.T) {
	var six netip.Addr
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
		six = netip.IPv6Loopback()
	}
	conformance.Run(t, func(t *testing.T) *conformance.Pair {
		l := newLinux(t)
		return &conformance.Pair{
			Client: l, Server: l,
			Address: netip.MustParseAddr("127.0.0.1"), Source: netip.MustParseAddr("127.0.0.1"),
			Second: netip.MustParseAddr("127.0.0.2"), Address6: six,
			Foreign: netip.MustParseAddr("203.0.113.77"), Broadcast: netip.MustParseAddr("127.255.255.255"),
			Exhaust: l.exhaust,
			Wait:    func() bool { time.Sleep(time.Millisecond); return true },
		}
	})
}
