package conformance

import (
	"net/netip"
	"testing"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sockets"
)

// Process is the sockets of one process, and the readiness that its loops are notified of.
type Process interface {
	sockets.Stack
	// Ready returns the events that epoll would report for fd, if it watched for Readable and
	// Writable.
	Ready(fd int) eventloop.Events
}

// Pair is two processes, of which one connects to the other. They may be on the same machine, and
// may be the same process.
type Pair struct {
	Client, Server Process
	// Address is the server machine's, and Source is the client's address towards it.
	Address, Source netip.Addr
	// Second is another address of the server machine, of the same family.
	Second netip.Addr
	// Address6 is an IPv6 address of the server machine. It is zero if there is no IPv6.
	Address6 netip.Addr
	// Foreign is an IPv4 address of no machine.
	Foreign netip.Addr
	// NoRoute is an address to which the client has no route. It is zero if none is known.
	NoRoute netip.Addr
	// Broadcast is the broadcast address of a network of the client's.
	Broadcast netip.Addr
	// Exhaust takes away the descriptors that the server could still get, until restore is called.
	// It is nil if there are always enough.
	Exhaust func() (restore func())
	// Wait lets pending activity proceed for a while. False: there is none.
	Wait func() bool
}

// fact is a named check of one behaviour.
type fact struct {
	name  string
	check func(w *world)
}

// Run checks all facts. It makes a Pair for each.
func Run(t *testing.T, pair func(t *testing.T) *Pair) {
	for _, group := range [][]fact{setup, backlog, stream, ends, resets, names, ports, routes, limits} {
		for _, f := range group {
			t.Run(f.name, func(t *testing.T) { f.check(newWorld(t, pair(t))) })
		}
	}
}
