//go:build linux && rdma

package ucm

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// endpoint is an identifier with a queue pair and one receive.
type endpoint struct {
	id *cmid.ID
	cq verbs.CQ
	qp verbs.QP
}

func newEndpoint(t *testing.T, id *cmid.ID) *endpoint {
	t.Helper()
	e := &endpoint{id: id}
	dev := id.Device()
	var err error
	e.cq, err = dev.CreateCQ(4, func() {})
	must(t, err)
	e.qp, err = id.CreateQP(verbs.QPInitAttr{SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 1, MaxRecvWR: 1})
	must(t, err)
	mr, err := dev.Alloc(64, verbs.LocalWrite)
	must(t, err)
	must(t, e.qp.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: mr, Length: 64}}))
	return e
}

func (e *endpoint) send() error {
	return e.qp.PostSend(&verbs.SendWR{Op: verbs.Send, Flags: verbs.Signaled, Inline: []byte("x")})
}

// completes looks into the queue, and turns the loop of c, until op has completed.
func (e *endpoint) completes(t *testing.T, c *cmid.Channel, op verbs.Opcode) {
	t.Helper()
	fd, err := c.FD()
	must(t, err)
	for deadline := time.Now().Add(time.Minute); ; {
		var wc [1]verbs.WC
		for e.cq.Poll(wc[:]) == 1 {
			if wc[0].Status != verbs.StatusSuccess {
				t.Fatalf("completed %+v", wc[0])
			}
			if wc[0].Op == op {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %v", op)
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10)
		_, _, _ = c.GetEvent()
	}
}

// TestFirstMessageCanBeAnswered: the peer has sent before the loop has heard how the accept has
// ended. Whenever its message is polled, the queue pair can send.
func TestFirstMessageCanBeAnswered(t *testing.T) {
	a, err := cmid.OpenChannel(New(Config{}))
	must(t, err)
	b, err := cmid.OpenChannel(New(Config{}))
	must(t, err)
	l, err := b.CreateID(cmid.PortSpaceTCP)
	must(t, err)
	must(t, l.BindAddr(cmid.AddrFrom(netip.MustParseAddr(env(t, "RDMA_ADDR")), 0)))
	must(t, l.Listen(0))
	active, err := a.CreateID(cmid.PortSpaceTCP)
	must(t, err)
	must(t, active.ResolveAddr(cmid.Addr{}, l.LocalAddr(), time.Second))
	get[*cmid.AddrResolved](t, a)
	must(t, active.ResolveRoute(time.Second))
	get[*cmid.RouteResolved](t, a)
	asks := newEndpoint(t, active)
	must(t, active.Connect(nil, nil))
	answers := newEndpoint(t, b.ID(get[*cmid.ConnectRequest](t, b).ID))
	must(t, answers.id.Accept(nil, nil))
	get[*cmid.Established](t, a) // from here on only this loop turns
	must(t, asks.send())
	asks.completes(t, a, verbs.Send)
	answers.completes(t, b, verbs.Recv)
	must(t, answers.send())
	answers.completes(t, b, verbs.Send)
	asks.completes(t, a, verbs.Recv)
	must(t, a.Close())
	must(t, b.Close())
}
