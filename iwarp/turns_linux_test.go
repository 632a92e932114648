package iwarp

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/sockets"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// A peer that sends as many small messages as it can gets no more of the loop's time than others.
// However much can be read, a turn reads no more messages than can be delivered in a short time.
func TestFloodOfSmallMessagesTakesTurns(t *testing.T) {
	const messages, most = 40_000, 2_000
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	mr, err := n.in.dev.Alloc(64, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	var srq verbs.SRQ
	srq, err = n.in.dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1024, OnEmpty: func(verbs.QP) {
		for range 32 {
			if err := srq.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: mr, Length: 64}}); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	peer, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	b := wire.AppendFrame(nil, &wire.Frame{Flags: wire.FlagEnhanced, Revision: 2, Control: wire.Control{IRD: 1, ORD: 1}})
	if _, err := peer.Write(b); err != nil {
		t.Fatal(err)
	}
	child := n.wait(lh, states.KindConnectRequest).child
	attr := qpAttr(n)
	attr.SRQ = srq
	if _, err := n.in.ids[child].CreateQP(attr); err != nil {
		t.Fatal(err)
	}
	n.do(child, &cmid.Accept{})
	reply := make([]byte, wire.FrameLen+wire.ControlLen)
	turns(t, "the Reply", func() bool { return n.in.conns == 1 && len(n.in.dirty) == 0 }, n)
	if _, err := io.ReadFull(peer, reply); err != nil {
		t.Fatal(err)
	}
	b = b[:0]
	for i := range messages {
		h := wire.Header{Last: true, Opcode: wire.OpSend, MSN: uint32(i + 1)}
		b = wire.AppendFPDU(b, &wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &h), 'x')})
	}
	sent := make(chan error, 1)
	go func() {
		_, err := peer.Write(b)
		sent <- err
	}()
	before, worst := 0, 0
	turns(t, "all messages", func() bool {
		worst = max(worst, len(n.wcs)-before)
		before = len(n.wcs)
		return before == messages
	}, n)
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if worst > most {
		t.Errorf("%d messages came in one turn, want no more than %d", worst, most)
	}
}

// countedReads is a Stack that counts reads.
type countedReads struct {
	sockets.Stack
	n int
}

func (s *countedReads) Recv(fd int, b []byte) (int, error) { s.n++; return s.Stack.Recv(fd, b) }

func (s *countedReads) Readv(fd int, b [][]byte) (int, error) { s.n++; return s.Stack.Readv(fd, b) }

// After a message that is not small, a read takes all that has arrived, not only what the first
// read asks for: otherwise bulk data would cost several times as many system calls.
func TestReadsGrowWithTheMessages(t *testing.T) {
	const messages, size = 20, 4000
	client, server := newNode(t), newNode(t)
	reads := &countedReads{Stack: server.in.sys}
	server.in.sys = reads
	p := connect(t, client, server, messages+1)
	text := strings.Repeat("x", size)
	p.cq.send(0, text)
	turns(t, "the first message", func() bool { return len(server.wcs) == 1 }, client, server)
	for i := range messages {
		p.cq.send(uint64(i), text)
	}
	fd := client.in.ids[p.ch].conn.fd
	turns(t, "all have arrived", func() bool { return len(client.wcs) == 1+messages && client.in.unackedBytes(fd) == 0 }, client)
	reads.n = 0
	turns(t, "all messages", func() bool { return len(server.wcs) == 1+messages }, server)
	if reads.n > 2 {
		t.Errorf("%d reads of %d bytes in all, want 2 at most", reads.n, messages*size)
	}
}
