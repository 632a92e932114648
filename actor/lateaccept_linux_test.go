package actor

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// A request that is accepted when its peer has gone leaves no identifier behind.
func TestAcceptAfterThePeerHasGone(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	server := newProbe(t, sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, "127.0.0.1:0")
	peer, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Write(wire.AppendFrame(nil, &wire.Frame{Revision: 1})); err != nil {
		t.Fatal(err)
	}
	_, s := next[*ConnectRequest](server)
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	delivered(t, peer.LocalAddr().String())
	for range 2 { // a turn looks at its sockets before it runs posted functions
		turn(t, rt, func() {})
	}
	server.send(s, &Accept{})
	f, _ := next[*CommandFailed](server)
	is(t, f, unix.ECONNRESET)
	closed, _ := next[*Closed](server)
	is(t, closed.Err, unix.ECONNRESET)
}

// delivered waits until the kernel has delivered the end of the stream from an address to this
// process: on a busy machine that takes it a moment.
func delivered(t *testing.T, from string) {
	t.Helper()
	for end := time.Now().Add(patience); connectedTo(from); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the end is not delivered")
		}
	}
}

// connectedTo reports whether a socket of this process has a connection to that address.
func connectedTo(to string) bool {
	for fd := range 1 << 12 {
		sa, err := unix.Getpeername(fd)
		in4, ok := sa.(*unix.SockaddrInet4)
		if err != nil || !ok || !strings.HasSuffix(to, fmt.Sprintf(":%d", in4.Port)) {
			continue
		}
		if i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil && i.State == unix.BPF_TCP_ESTABLISHED {
			return true
		}
	}
	return false
}
