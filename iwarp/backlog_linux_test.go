package iwarp

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// TestListenBacklog: the backlog is the listening socket's, which refuses further connections while
// none is accepted.
// manpages: listen-1
func TestListenBacklog(t *testing.T) {
	for _, want := range []uint32{1, 5} {
		n := newNode(t)
		h := n.id()
		n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
		n.do(h, &cmid.Listen{Backlog: int(want)})
		at := n.in.ids[h].Info().Local
		for range 2 * want { // the loop does not turn, so nothing is accepted
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			err = unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: int(at.Port())})
			if err != nil && err != unix.EINPROGRESS {
				t.Fatal(err)
			}
		}
		info, err := unix.GetsockoptTCPInfo(n.in.ids[h].lis.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		// Of a listening socket these are the backlog and how many wait. Linux takes one more than
		// it was delivered.
		if info.Sacked != want || info.Unacked > want+1 {
			t.Errorf("backlog %d: %d connections wait, of at most %d", want, info.Unacked, info.Sacked)
		}
	}
}

// TestListenDefaultBacklog: a backlog of 0 or less, or beyond the device's maximum, is that
// maximum, as with rdma_ucm. To listen(2) 0 is a queue for a single connection, so a server that
// names no backlog would turn clients away.
func TestListenDefaultBacklog(t *testing.T) {
	want := uint32(maxBacklog)
	b, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32); err != nil {
		t.Fatal(err)
	} else {
		want = min(want, uint32(n))
	}
	for _, asked := range []int{0, -1, maxBacklog + 1, math.MaxInt} {
		n := newNode(t)
		h := n.id()
		n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
		n.do(h, &cmid.Listen{Backlog: asked})
		info, err := unix.GetsockoptTCPInfo(n.in.ids[h].lis.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		if info.Sacked != want { // of a listening socket that is the backlog
			t.Errorf("backlog %d: %d connections may wait, want %d", asked, info.Sacked, want)
		}
	}
}
