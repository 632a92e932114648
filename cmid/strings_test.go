package cmid

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// TestEventStrings checks the line that each event is in a log.
func TestEventStrings(t *testing.T) {
	var (
		id    = EventBase{ID: 2}
		local = MustAddr("127.0.0.1:35000")
		peer  = MustAddr("127.0.0.1:7471")
		group = MustAddr("[ff12::1]:0")
		reset = fmt.Errorf("iwarp: receive: ended: %w", unix.ECONNRESET)
	)
	kinds := make(map[states.Kind]bool)
	for _, r := range []struct {
		ev   Event
		want string
	}{
		{&Bound{EventBase: id, Local: local, Device: "iwarp0"}, "bound 127.0.0.1:35000 (id 2), device iwarp0"},
		{&Bound{EventBase: id, Local: MustAddr("0.0.0.0:7471")}, "bound 0.0.0.0:7471 (id 2)"},
		{&Listening{EventBase: id, Local: peer, Backlog: 128}, "listening 127.0.0.1:7471 (id 2), backlog 128"},
		{&AddrResolved{EventBase: id, Local: local, Peer: peer, Device: "iwarp0"}, "address resolved 127.0.0.1:35000 -> 127.0.0.1:7471 (id 2), device iwarp0"},
		{&RouteResolved{id}, "route resolved (id 2)"},
		{
			&ConnectRequest{EventBase: id, Listener: 1, Local: peer, Peer: local, PrivateData: []byte("abcd")},
			"connect request 127.0.0.1:7471 -> 127.0.0.1:35000 (id 2) on listener 1, 4 bytes of private data",
		},
		{&ConnectResponse{EventBase: id, PrivateData: []byte("abcd")}, "connect response (id 2), 4 bytes of private data"},
		{
			&Established{EventBase: id, Local: local, Peer: peer, PrivateData: []byte("abcd"), MaxMessage: 65536},
			"established 127.0.0.1:35000 -> 127.0.0.1:7471 (id 2), 4 bytes of private data, messages up to 65536 bytes",
		},
		{&Established{EventBase: id, Peer: peer}, "established -> 127.0.0.1:7471 (id 2)"},
		{&Established{EventBase: id, Fallback: reset}, "established (id 2), fallback after: iwarp: receive: ended: connection reset by peer"},
		{&Disconnected{EventBase: id}, "disconnected (id 2)"},
		{&Disconnected{EventBase: id, Err: reset}, "disconnected (id 2): iwarp: receive: ended: connection reset by peer"},
		{&Disconnected{EventBase: EventBase{ID: 2, Status: -104}, Err: unix.ECONNRESET}, "disconnected (id 2, status -104): connection reset by peer"},
		{&DeviceRemoval{EventBase: id, Device: "iwarp0"}, "device removal (id 2), device iwarp0"},
		{&MulticastJoin{EventBase: id, Addr: group, UD: UDParam{QPN: 0xFFFFFF, QKey: 0x1234}}, "multicast join [ff12::1]:0 (id 2), qpn 0xffffff, qkey 0x1234"},
		{&AddrChange{id}, "address change (id 2)"},
		{&NeighbourChanged{id}, "neighbour changed (id 2)"},
		{&TimewaitExit{id}, "timewait exit (id 2)"},
		{&AddrInfoResolved{EventBase: id}, "addrinfo resolved (id 2)"},
		{&AddrInfoResolved{EventBase: id, Info: []AddrInfo{{Dst: peer}, {Src: local, Dst: peer}}}, "addrinfo resolved (id 2): -> 127.0.0.1:7471, 127.0.0.1:35000 -> 127.0.0.1:7471"},
		{&AddrInfoResolved{EventBase: id, Info: []AddrInfo{{Src: local}}}, "addrinfo resolved (id 2): 127.0.0.1:35000"},
		{&User{EventBase: id, Arg: 0x2a}, "user event 0x2a (id 2)"},
		{&Internal{EventBase: id, Arg: 7}, "internal event 0x7 (id 2)"},
		{&Done{EventBase: id, Command: &LeaveMulticast{}}, "done LeaveMulticast (id 2)"},
		{&Done{EventBase: id}, "done (id 2)"},
		{&QPFailed{id}, "queue pair failed (id 2)"},
		{&Closed{EventBase: id}, "closed (id 2)"},
		{
			&Closed{EventBase: id, Err: reset, Delivered: 3, Unsent: 1, Unknown: 2},
			"closed (id 2), messages: 3 delivered, 1 unsent, 2 unknown: iwarp: receive: ended: connection reset by peer",
		},
	} {
		if got := fmt.Sprint(r.ev); got != r.want {
			t.Errorf("%T is\n\t%s, want\n\t%s", r.ev, got, r.want)
		}
		kinds[r.ev.Kind()] = true
	}
	for k := range states.KindClosed + 1 {
		switch k {
		case states.KindAddrError, states.KindRouteError, states.KindConnectError, states.KindUnreachable, states.KindRejected,
			// failures, which are errors
			states.KindMulticastError, states.KindAddrInfoError, states.KindCommandFailed, states.KindListenFailed:
		default:
			if !kinds[k] {
				t.Errorf("%v has no line in this test", k)
			}
		}
	}
}

// TestRejectReasonByApplication: only the application's answer ends the search for an address that
// accepts.
func TestRejectReasonByApplication(t *testing.T) {
	for r := range RejectReason(256) {
		want := r == RejectConsumerDefined || r == RejectVendorOption || r == RejectReset
		if r.ByApplication() != want {
			t.Errorf("%d (%v): %t", r, r, !want)
		}
	}
}

// TestStringsOfFailures: to a log a failure is its story, not an event's line.
func TestStringsOfFailures(t *testing.T) {
	f := &CommandFailed{FailureBase{EventBase: EventBase{ID: 2}, Op: "listen", Err: unix.EINVAL}}
	if got := fmt.Sprint(f); got != f.Error() || !strings.HasPrefix(got, "listen (id 2") {
		t.Errorf("a failure prints as %q", got)
	}
}
