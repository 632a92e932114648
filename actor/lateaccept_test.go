package actor

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
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
	// the kernel may take a moment to deliver the end, on a busy machine
	time.Sleep(100 * time.Millisecond)
	for range 2 { // a turn looks at its sockets before it runs what was posted
		turned := make(chan struct{})
		if err := rt.loops[0].el.Post(func() { close(turned) }); err != nil {
			t.Fatal(err)
		}
		<-turned
	}
	server.send(s, &Accept{})
	f, _ := next[*CommandFailed](server)
	is(t, f, unix.ECONNRESET)
	closed, _ := next[*Closed](server)
	is(t, closed.Err, unix.ECONNRESET)
}
