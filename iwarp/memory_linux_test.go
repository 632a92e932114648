package iwarp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

const anyAccess = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite

// alloc makes a region of n random bytes.
func (n *node) alloc(size int, access verbs.Access) *verbs.MR {
	n.t.Helper()
	mr, err := n.in.dev.Alloc(size, access)
	if err != nil {
		n.t.Fatal(err)
	}
	r := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = r.Read(mr.Bytes) // never fails
	return mr
}

// whole returns all of a region.
func whole(mr *verbs.MR) []verbs.SGE { return []verbs.SGE{{MR: mr, Length: uint32(len(mr.Bytes))}} }

func (q *testQP) post(wr verbs.SendWR) {
	q.n.t.Helper()
	wr.Flags |= verbs.Signaled
	if err := q.PostSend(&wr); err != nil {
		q.n.t.Fatal(err)
	}
}

// completed runs the loops until the node has so many completions.
func (n *node) completed(k int, others ...*node) {
	n.t.Helper()
	turns(n.t, fmt.Sprintf("%d completions", k), func() bool { return len(n.wcs) >= k }, append(others, n)...)
}

// TestWriteRead writes to the peer's memory and reads it back, in one segment and in many,
// immediately and while the socket is full.
func TestWriteRead(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, size := range []int{1, 127, 128, 129, 4096, 16383, 16384, 65504, 65505, 3 << 20} {
			t.Run(fmt.Sprintf("%d bytes, CRC %t", size, crc), func(t *testing.T) {
				client, server := newNode(t, func(c *Config) { c.CRC = crc }), newNode(t)
				p := connect(t, client, server, 1)
				src, back := client.alloc(size, 0), client.alloc(size+8, verbs.LocalWrite)
				dst := server.alloc(size+16, anyAccess)
				clear(back.Bytes)
				around := append(bytes.Clone(dst.Bytes[:8]), dst.Bytes[8+size:]...)
				p.cq.post(verbs.SendWR{ID: 1, Op: verbs.Write, SGL: whole(src), RemoteAddr: dst.Addr + 8, RKey: dst.RKey})
				p.cq.post(verbs.SendWR{
					ID: 2, Op: verbs.Read, RemoteAddr: dst.Addr + 8, RKey: dst.RKey,
					SGL: []verbs.SGE{{MR: back, Offset: 4, Length: uint32(size)}},
				})
				p.cq.post(verbs.SendWR{ID: 3, Inline: []byte("there")})
				client.completed(3, server)
				server.completed(1, client)
				for i, want := range []verbs.Opcode{verbs.Write, verbs.Read, verbs.Send} {
					if wc := client.wcs[i]; wc.ID != uint64(i+1) || wc.Op != want || wc.Status != verbs.StatusSuccess {
						t.Errorf("completion %d: %+v, want work request %d: they complete in posting order", i, wc, i+1)
					}
				}
				if !bytes.Equal(dst.Bytes[8:8+size], src.Bytes) {
					t.Error("the Write did not place what was written")
				}
				if !bytes.Equal(back.Bytes[4:4+size], src.Bytes) {
					t.Error("the Read did not bring what the Write before it wrote")
				}
				if !bytes.Equal(append(bytes.Clone(dst.Bytes[:8]), dst.Bytes[8+size:]...), around) {
					t.Error("bytes beside the target were touched")
				}
			})
		}
	}
}

// TestWriteNotAllowed: the connection ends on both sides with the Terminate that states the reason.
// The memory is unchanged.
func TestWriteNotAllowed(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 1)
	dst := server.alloc(64, verbs.LocalWrite|verbs.RemoteRead)
	was := bytes.Clone(dst.Bytes)
	p.cq.post(verbs.SendWR{Op: verbs.Write, Inline: []byte("mine"), RemoteAddr: dst.Addr, RKey: dst.RKey})
	for who, e := range map[string]delivered{
		"the target": server.wait(p.sh, states.KindDisconnected, client), "the writer": client.wait(p.ch, states.KindDisconnected, server),
	} {
		var why *core.Error
		if !errors.As(e.err, &why) || why.Layer != wire.LayerRDMAP || why.Type != wire.RDMAPProtection || why.Code != 2 {
			t.Errorf("%s got %v, want an access rights violation", who, e.err)
		}
	}
	if !bytes.Equal(dst.Bytes, was) {
		t.Error("memory without remote write was written")
	}
}

// TestDomains: a peer reaches the memory of its queue pair's domain only, and so do work requests.
func TestDomains(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 1)
	pd, err := server.in.dev.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	dst, err := pd.Alloc(64, anyAccess)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.sq.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: dst, Length: 64}}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("receive into another domain's memory: %v, want EINVAL", err)
	}
	if err := pd.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("closing a domain with memory: %v, want EBUSY", err)
	}
	p.cq.post(verbs.SendWR{Op: verbs.Write, Inline: []byte("mine"), RemoteAddr: dst.Addr, RKey: dst.RKey})
	var why *core.Error
	if e := server.wait(p.sh, states.KindDisconnected, client); !errors.As(e.err, &why) || why.Layer != wire.LayerDDP || why.Code != 2 {
		t.Errorf("a Write to another domain ended with %v, want DDP: STag not associated with the stream", e.err)
	}
	if err := server.in.dev.Free(dst); err != nil {
		t.Fatal(err)
	}
	if err := pd.Close(); err != nil {
		t.Errorf("closing an empty domain: %v", err)
	}
	if _, err := pd.Alloc(1, 0); !errors.Is(err, unix.EINVAL) {
		t.Errorf("memory of a closed domain: %v, want EINVAL", err)
	}
	if err := server.in.dev.PD().Close(); !errors.Is(err, unix.EINVAL) {
		t.Errorf("closing the device's own domain: %v, want EINVAL", err)
	}
}

// TestLocal: bytes are sent without a copy. No peer can access them, and nothing is received into
// them.
func TestLocal(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 1)
	src := bytes.Repeat([]byte("caller's"), 512)
	mr := client.in.dev.PD().(verbs.Registrar).Local(src)
	if mr.RKey != 0 || mr.Access != 0 || &mr.Bytes[0] != &src[0] {
		t.Errorf("%+v: a region without key and rights, of the caller's bytes, is wanted", mr)
	}
	if err := p.cq.PostRecv(verbs.RecvWR{SGE: whole(&mr)[0]}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a receive into it: %v, want EINVAL", err)
	}
	dst := server.alloc(len(src), anyAccess)
	p.cq.post(verbs.SendWR{ID: 1, Op: verbs.Write, SGL: whole(&mr), RemoteAddr: dst.Addr, RKey: dst.RKey})
	p.cq.post(verbs.SendWR{ID: 2, Inline: []byte("there")})
	client.completed(2, server)
	server.completed(1, client)
	if !bytes.Equal(dst.Bytes, src) {
		t.Error("other bytes came")
	}
}

// TestRegister: while the caller's bytes are registered, the peer reads them without a copy. If an
// answer is still being sent when they are deregistered, it is sent before anything that is posted
// afterwards.
func TestRegister(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 1)
	const size = 32 << 20 // more than the sockets take
	src := bytes.Repeat([]byte{1}, size)
	mr, err := client.in.dev.PD().(verbs.Registrar).Register(src, verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	if &mr.Bytes[0] != &src[0] {
		t.Error("the bytes were copied")
	}
	for _, bad := range [][]byte{nil, {}} {
		if _, err := client.in.dev.PD().(verbs.Registrar).Register(bad, 0); !errors.Is(err, unix.EINVAL) {
			t.Errorf("registering nothing: %v, want EINVAL", err)
		}
	}
	sink := server.alloc(size, verbs.LocalWrite)
	p.sq.post(verbs.SendWR{ID: 7, Op: verbs.Read, SGL: whole(sink), RemoteAddr: mr.Addr, RKey: mr.RKey})
	server.completed(1, client)
	if !bytes.Equal(sink.Bytes, src) {
		t.Error("other bytes were read")
	}
	server.wcs = nil
	p.sq.post(verbs.SendWR{ID: 8, Op: verbs.Read, SGL: whole(sink), RemoteAddr: mr.Addr, RKey: mr.RKey})
	n := 0
	turns(t, "the request", func() bool { n++; return n > 1 }, server)
	turns(t, "the answer to fill the socket", func() bool { return p.cq.QP.(*queuePair).conn.core.Pending() }, client)
	if err := client.in.dev.Free(mr); err != nil {
		t.Fatal(err)
	}
	p.cq.post(verbs.SendWR{ID: 9, Op: verbs.Write})
	client.completed(1, server)
	if client.wcs[0].Status == verbs.StatusSuccess { // otherwise the end came first
		for i := range src {
			src[i] = 2
		}
	}
	turns(t, "the end of the Read", func() bool { return len(server.wcs) > 0 }, server, client)
	if bytes.IndexByte(sink.Bytes, 2) >= 0 {
		t.Error("the peer was sent bytes that came to the memory later")
	}
}

// TestFreedMemory: freed memory is not posted, not written and not read.
func TestFreedMemory(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 1)
	mr := client.alloc(64, anyAccess)
	if err := client.in.dev.Free(mr); err != nil {
		t.Fatal(err)
	}
	if err := p.cq.PostSend(&verbs.SendWR{SGL: whole(mr)}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("Send from freed memory: %v, want EINVAL", err)
	}
	if err := p.cq.PostRecv(verbs.RecvWR{SGE: whole(mr)[0]}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("receive into freed memory: %v, want EINVAL", err)
	}
	sink := server.alloc(64, verbs.LocalWrite)
	p.sq.post(verbs.SendWR{ID: 7, Op: verbs.Read, SGL: whole(sink), RemoteAddr: mr.Addr, RKey: mr.RKey})
	server.completed(2, client)
	for _, wc := range server.wcs {
		if wc.Status != verbs.StatusFlushed {
			t.Errorf("%+v, want everything flushed: the peer said why in its Terminate", wc)
		}
	}
}

// TestSRQLimit: the limit event comes once for each time it was asked for.
func TestSRQLimit(t *testing.T) {
	client, server := newNode(t), newNode(t)
	limits := 0
	srq, err := server.in.dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 8, OnLimit: func() { limits++ }})
	if err != nil {
		t.Fatal(err)
	}
	mr := server.alloc(64, verbs.LocalWrite)
	post := func() {
		t.Helper()
		if err := srq.PostRecv(verbs.RecvWR{SGE: whole(mr)[0]}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		post()
	}
	if err := srq.Arm(9); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a limit above MaxWR: %v, want EINVAL", err)
	}
	if err := srq.Arm(3); err != nil {
		t.Fatal(err)
	}
	_, addr := server.listen("127.0.0.1:0")
	ch := client.resolve(addr)
	cq := client.qp(ch, 0)
	client.do(ch, &cmid.Connect{})
	turns(t, "request", func() bool { return len(server.events) == 1 }, client, server)
	sh := server.events[0].child
	attr := qpAttr(server)
	attr.SRQ = srq
	if _, err := server.in.ids[sh].CreateQP(attr); err != nil {
		t.Fatal(err)
	}
	server.do(sh, &cmid.Accept{})
	client.wait(ch, states.KindEstablished, server)
	for i, want := range []int{0, 1, 1} {
		cq.post(verbs.SendWR{Inline: []byte("x")})
		server.completed(i+1, client)
		if limits != want {
			t.Errorf("after message %d: %d limit events, want %d: 4 receives, a limit of 3, one event for one Arm", i+1, limits, want)
		}
	}
	if err := srq.Arm(2); err != nil {
		t.Fatal(err)
	}
	turns(t, "a limit that is undercut already", func() bool { return limits == 2 }, server)
}

// TestSolicitedOnly: after ReqNotify(true) a queue is notified only of messages sent with Solicited
// and of failures. Completions that came before are polled at the same time.
func TestSolicitedOnly(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 4)
	server.cq.ReqNotify(true)
	p.cq.post(verbs.SendWR{Inline: []byte("quiet")})
	client.completed(1, server)
	p.cq.post(verbs.SendWR{Inline: []byte("loud"), Flags: verbs.Solicited})
	server.completed(1, client)
	if len(server.wcs) != 2 || server.notes != 1 {
		t.Errorf("%d completions in %d notifications, want both in one", len(server.wcs), server.notes)
	}
	client.do(p.ch, &cmid.Disconnect{})
	server.completed(4, client)
	if server.wcs[3].Status != verbs.StatusFlushed {
		t.Errorf("%+v, want a flushed receive: a failure is reported in any case", server.wcs[3])
	}
}

// TestForeseen: if a message continues in large segments, one read puts the next ones into their
// destination, too. The peer may choose any size of segments.
func TestForeseen(t *testing.T) {
	n := newNode(t)
	_, addr := n.listen("127.0.0.1:0")
	r := rawDial(t, addr)
	r.write(wire.AppendFrame(nil, &wire.Frame{Revision: 1}))
	turns(t, "request", func() bool { return len(n.events) == 1 }, n)
	h := n.events[0].child
	q := n.qp(h, 0)
	n.do(h, &cmid.Accept{})
	n.wait(h, states.KindEstablished)
	dst := n.alloc(200000, verbs.LocalWrite)
	if err := q.PostRecv(verbs.RecvWR{SGE: whole(dst)[0]}); err != nil {
		t.Fatal(err)
	}
	msg := n.alloc(150000, 0).Bytes
	var stream []byte
	for off, cuts := 0, []int{20000, 20000, 35000, 35000, 40000}; len(cuts) > 0; cuts = cuts[1:] {
		head := wire.Header{Last: len(cuts) == 1, Opcode: wire.OpSend, MSN: 1, MO: uint32(off)}
		stream = wire.AppendFPDU(stream, &wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &head), msg[off:off+cuts[0]]...)})
		off += cuts[0]
	}
	c := n.in.ids[h].conn
	r.write(stream[:1000])
	turns(t, "the first header", func() bool { return c.core.Bulk() }, n)
	if got := len(c.core.Landings(n.in.land[:0], n.in.peek[:])); got < 10 {
		t.Errorf("%d landings for a large message that goes on, want several segments' in one read", got)
	}
	for stream = stream[1000:]; len(stream) > 0; stream = stream[min(len(stream), 64000):] {
		r.write(stream[:min(len(stream), 64000)])
		turns(t, "what was sent is read", func() bool { return true }, n)
	}
	n.completed(1)
	if wc := n.wcs[0]; wc.Status != verbs.StatusSuccess || !bytes.Equal(dst.Bytes[:wc.Bytes], msg) {
		t.Errorf("the message arrived wrong: %+v", wc)
	}
}
