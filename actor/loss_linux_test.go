package actor

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// A peer that has sent its messages and then resets the connection, such as a process that is
// killed, takes none of them back: a slow owner gets all, in order, before the end.
func TestMessagesOfALostPeer(t *testing.T) {
	const messages = 64
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	var mu sync.Mutex
	var held []*Received
	release := func() {
		mu.Lock()
		all := held
		held = nil
		mu.Unlock()
		for _, m := range all {
			m.Release()
		}
	}
	t.Cleanup(release)
	server := newProbe(t, sys, rt.OnLoop(), func(ctx actor.Context) {
		if m, ok := ctx.Message().(*Received); ok {
			mu.Lock()
			defer mu.Unlock()
			held = append(held, m.Retain())
		}
	})
	_, at := listen(server, rt, "127.0.0.1:0", IDConfig{Raw: true, Credits: 4, MaxMessage: 64})
	peer, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		t.Helper()
		if _, err := peer.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	write(wire.AppendFrame(nil, &wire.Frame{Revision: 1}))
	_, s := next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	if _, err := io.ReadFull(peer, make([]byte, wire.FrameLen)); err != nil {
		t.Fatal(err)
	}
	var b []byte
	for i := range messages {
		h := wire.Header{Last: true, Opcode: wire.OpSend, MSN: uint32(i + 1)}
		b = wire.AppendFPDU(b, &wire.FPDU{ULPDU: fmt.Appendf(wire.AppendHeader(nil, &h), "message %d", i)})
	}
	write(b)
	got := func(i int) {
		t.Helper()
		if g := server.any(); g.String() != fmt.Sprintf("Received(%q)", fmt.Sprint("message ", i)) {
			t.Fatalf("got %v in the place of message %d", g, i)
		}
	}
	got(0)
	if err := peer.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	delivered(t, peer.LocalAddr().String())
	for range 2 { // a turn looks at its sockets before it runs posted functions
		turn(t, rt, func() {})
	}
	for i := 1; i < messages; i++ {
		release()
		got(i)
	}
	d, _ := next[*Disconnected](server)
	is(t, d.Err, unix.ECONNRESET)
	next[*Closed](server)
}
