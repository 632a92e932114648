package iwarp

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/states"
)

// TestStalledPeer is given up in the middle of a message; one whose bytes wait for a loop that was busy is not.
func TestStalledPeer(t *testing.T) {
	const limit = 50 * time.Millisecond
	n := newNode(t, func(c *Config) { c.MessageTimeout = limit })
	_, addr := n.listen("127.0.0.1:0")
	r := rawDial(t, addr)
	r.write(wire.AppendFrame(nil, &wire.Frame{Revision: 1}))
	turns(t, "request", func() bool { return len(n.events) == 1 }, n)
	h := n.events[0].child
	n.qp(h, 2)
	n.do(h, &cmid.Accept{})
	n.wait(h, states.KindEstablished)
	msg := wire.AppendFPDU(nil, &wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &wire.Header{Last: true, Opcode: wire.OpSend, MSN: 1}), "hello"...)})
	r.write(msg[:10])
	turns(t, "the first bytes are read", func() bool { c := n.in.ids[h].conn; _, armed := c.core.Deadline(); return armed }, n)
	idle := 0
	turns(t, "epoll forgets that the socket was readable", func() bool { idle++; return idle > 3 }, n)
	crowd(n, 200)
	r.write(msg[10:])
	time.Sleep(2 * limit) // the loop is busy elsewhere, and when it comes back so much is readable that timers come first
	turns(t, "the message", func() bool { return len(n.wcs) == 1 }, n)
	if e := n.found(h, states.KindDisconnected); e != nil {
		t.Fatalf("the peer was given up with its bytes unread: %v", e)
	}
	msg[15] = 2 // the low byte of the MSN
	r.write(msg[:10])
	if e := n.wait(h, states.KindDisconnected); !errors.Is(e.err, unix.ETIMEDOUT) {
		t.Errorf("a stalled peer: %v, want ETIMEDOUT", e.err)
	}
	turns(t, "the socket's end", r.ended, n)
}

// crowd gives n's loop so many readable fds.
func crowd(n *node, fds int) {
	n.t.Helper()
	for range fds {
		fd, err := unix.Eventfd(1, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		if err != nil {
			n.t.Fatal(err)
		}
		reg, err := n.loop.Add(fd, eventloop.Readable, ignore{})
		if err != nil {
			n.t.Fatal(err)
		}
		n.t.Cleanup(func() {
			if err := reg.Remove(); err != nil {
				n.t.Error(err)
			}
			unix.Close(fd)
		})
	}
}

type ignore struct{}

func (ignore) Ready(eventloop.Events) {}
