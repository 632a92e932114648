package iwarp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestBulk sends more than sockets have room for, in sizes that take every path: copied, gathered,
// staged, read in place.
func TestBulk(t *testing.T) {
	for _, crc := range []bool{false, true} {
		t.Run(fmt.Sprintf("crc=%t", crc), func(t *testing.T) {
			with := func(c *Config) { c.CRC = crc }
			client, server := newNode(t, with), newNode(t)
			p := connect(t, client, server, 0)
			const most = 1 << 20
			sizes := []int{0, 1, 63, 128, 129, 4096, 65503, 65504, 65505, 131072, 200_001, most, 300_000, 7}
			src, err := client.in.dev.Alloc(most, 0)
			if err != nil {
				t.Fatal(err)
			}
			rnd := rand.NewChaCha8([32]byte{1})
			_, _ = rnd.Read(src.Bytes)
			dst, err := server.in.dev.Alloc(len(sizes)*most, verbs.LocalWrite)
			if err != nil {
				t.Fatal(err)
			}
			for i := range sizes {
				wr := verbs.RecvWR{ID: uint64(i), SGE: verbs.SGE{MR: dst, Offset: uint32(i * most), Length: most}}
				if err := p.sq.PostRecv(wr); err != nil {
					t.Fatal(err)
				}
			}
			for i, n := range sizes {
				wr := verbs.SendWR{ID: uint64(i), Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: src, Offset: uint32(most - n), Length: uint32(n)}}}
				if err := p.cq.PostSend(&wr); err != nil {
					t.Fatal(err)
				}
			}
			buf := client.in.ids[p.ch].conn.fd
			if err := unix.SetsockoptInt(buf, unix.SOL_SOCKET, unix.SO_SNDBUF, 256<<10); err != nil {
				t.Fatal(err)
			}
			// the receiver does nothing; the sender must wait without losing its position
			for range 20 {
				if err := client.loop.Turn(); err != nil {
					t.Fatal(err)
				}
			}
			if c := client.in.ids[p.ch].conn; !c.blocked || len(client.wcs) == len(sizes) {
				t.Errorf("blocked %t, %d sends complete: the socket took everything, so this test shows nothing", c.blocked, len(client.wcs))
			}
			turns(t, "all messages", func() bool { return len(server.wcs) == len(sizes) && len(client.wcs) == len(sizes) }, client, server)
			for i, wc := range server.wcs {
				if wc.ID != uint64(i) || wc.Status != verbs.StatusSuccess || int(wc.Bytes) != sizes[i] ||
					!bytes.Equal(dst.Bytes[i*most:][:wc.Bytes], src.Bytes[most-sizes[i]:]) {
					t.Fatalf("message %d of %d bytes arrived wrong: %+v", i, sizes[i], wc)
				}
			}
			if c := client.in.ids[p.ch].conn; c.blocked || c.core.CRC() != crc {
				t.Errorf("afterwards blocked %t, crc %t", c.blocked, c.core.CRC())
			}
		})
	}
}

// TestOneWritePerTurn: all work requests of a turn are sent with one system call and received with
// one.
func TestOneWritePerTurn(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 64)
	notes, turnsBefore := server.notes, server.loop.Stats().Turns
	for i := range 64 {
		p.cq.send(uint64(i), fmt.Sprintf("message %d", i))
	}
	if err := client.loop.Turn(); err != nil {
		t.Fatal(err)
	}
	if len(client.wcs) != 64 {
		t.Errorf("%d of 64 sends were written in one turn", len(client.wcs))
	}
	turns(t, "64 messages", func() bool { return len(server.wcs) == 64 }, server)
	if got := server.notes - notes; got != 1 || server.loop.Stats().Turns-turnsBefore != 1 {
		t.Errorf("%d notifications in %d turns for one batch, want 1", got, server.loop.Stats().Turns-turnsBefore)
	}
}

// TestEstablishedFirst: no completion is reported before Established, whichever side sends first,
// and none after Disconnected.
func TestEstablishedFirst(t *testing.T) {
	for _, p2p := range []bool{true, false} {
		with := func(c *Config) { c.ClientServer = !p2p }
		client, server := newNode(t, with), newNode(t, with)
		lh, at := server.listen("127.0.0.1:0")
		h := client.resolve(at)
		cq := client.qp(h, 2)
		var sq *testQP
		server.react = func(e delivered) {
			switch e.kind {
			case states.KindConnectRequest:
				sq = server.qp(e.child, 2)
				server.do(e.child, &cmid.Accept{})
			case states.KindEstablished:
				sq.send(1, "from the server")
			}
		}
		client.react = func(e delivered) {
			if e.kind == states.KindEstablished {
				cq.send(1, "from the client")
				client.do(h, &cmid.Disconnect{})
			}
		}
		client.do(h, &cmid.Connect{})
		end := client.wait(h, states.KindDisconnected, server)
		child := server.found(lh, states.KindConnectRequest).child
		server.wait(child, states.KindDisconnected, client)
		for _, e := range []delivered{*client.found(h, states.KindEstablished), *server.found(child, states.KindEstablished)} {
			if e.polled != 0 {
				t.Errorf("p2p %t: %d completions before %v", p2p, e.polled, e)
			}
		}
		if sq.got(server.wcs[0]) != "from the client" || end.polled != 3 || len(client.wcs) != 3 {
			t.Errorf("p2p %t: server %+v; client got its end after %d of %d completions", p2p, server.wcs, end.polled, len(client.wcs))
		}
	}
}

// TestResponderFirst: the accepting side may send first with the peer-to-peer model, and without it
// after the hold-off.
func TestResponderFirst(t *testing.T) {
	for _, p2p := range []bool{true, false} {
		client, server := newNode(t, func(c *Config) { c.ClientServer = !p2p }), newNode(t)
		p := connect(t, client, server, 1)
		p.sq.send(1, "first")
		turns(t, "the message", func() bool { return len(client.wcs) == 1 }, client, server)
		if got := p.cq.got(client.wcs[0]); got != "first" {
			t.Errorf("p2p %t: got %q", p2p, got)
		}
	}
}

// TestReadInPlace: the rest of a large segment that has partly arrived is read directly into its
// receive. What follows it is read into the input buffer.
func TestReadInPlace(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	r := rawDial(t, at)
	r.write(request(""))
	child := n.wait(lh, states.KindConnectRequest).child
	qp, err := n.in.ids[child].CreateQP(qpAttr(n))
	if err != nil {
		t.Fatal(err)
	}
	const large = 60000
	mr, err := n.in.dev.Alloc(2*large, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		wr := verbs.RecvWR{SGE: verbs.SGE{MR: mr, Offset: uint32(i) * large, Length: large}}
		if err := qp.PostRecv(wr); err != nil {
			t.Fatal(err)
		}
	}
	n.do(child, &cmid.Accept{})
	n.wait(child, states.KindEstablished)
	msg := make([]byte, large)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(msg)
	var stream []byte
	for i, m := range [][]byte{msg, []byte("behind it")} {
		hd := wire.Header{Last: true, Opcode: wire.OpSend, MSN: uint32(i + 1)}
		stream = wire.AppendFPDU(stream, &wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &hd), m...)})
	}
	r.write(stream[:10000])
	c := n.in.ids[child].conn
	turns(t, "the first part", func() bool { return len(c.core.Landings(nil, nil)) > 0 }, n)
	if got, want := len(c.core.Landings(nil, nil)[0]), large+20-10000; got != want {
		t.Errorf("%d bytes left to land, want %d", got, want)
	}
	r.write(stream[10000:])
	turns(t, "both messages", func() bool { return len(n.wcs) == 2 }, n)
	if !bytes.Equal(mr.Bytes[:large], msg) || string(mr.Bytes[large:large+9]) != "behind it" {
		t.Errorf("the messages arrived wrong: %+v", n.wcs)
	}
}

// TestSegmentsWithCRC: with CRC in use, a TCP segment contains only whole FPDUs, because soft-iWARP
// considers a CRC wrong that is split over two segments. Small FPDUs share a segment.
func TestSegmentsWithCRC(t *testing.T) {
	n := newNode(t)
	l := rawListen(t)
	const mss, small, large = 1000, 100, 5000
	err := errors.Join(
		unix.SetsockoptInt(l.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, mss),
		// so that segments are queued and could be merged
		unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 2048))
	if err != nil {
		t.Fatal(err)
	}
	h := n.resolve(l.at)
	q := n.qp(h, 0)
	n.do(h, &cmid.Connect{})
	r := l.accept(n)
	ask := r.frame(n)
	r.write(wire.AppendFrame(nil, &wire.Frame{
		Reply: true, Revision: 2, Flags: wire.FlagEnhanced | wire.FlagCRC, Control: wire.Control{IRD: 1, ORD: min(1, ask.Control.IRD)},
	}))
	n.wait(h, states.KindEstablished)
	for i := range small {
		q.send(uint64(i), fmt.Sprint("message", i))
	}
	q.send(small, string(make([]byte, large)))
	turns(t, "the socket to be full, or done", func() bool { c := n.in.ids[h].conn; return !c.core.Pending() || c.blocked }, n)
	size, err := unix.GetsockoptInt(n.in.ids[h].conn.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	if err != nil {
		t.Fatal(err)
	}
	size = (size-24)&^7 + 24 // result of alignSegments
	fpdus, bytes, segments, filled := 0, 0, 0, size
	turns(t, "all of it", func() bool {
		r.read()
		for {
			f, k, err := wire.ConsumeFPDU(r.got)
			if err != nil {
				return bytes >= large
			}
			if k > mss || f.CRC != f.Checksum() {
				t.Fatalf("FPDU of %d bytes over an MSS of %d, CRC %#x", k, mss, f.CRC)
			}
			r.got = r.got[k:]
			fpdus++
			bytes += k
			if filled += k; filled > size {
				segments, filled = segments+1, k
			}
		}
	}, n)
	info, err := unix.GetsockoptTCPInfo(n.in.ids[h].conn.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		t.Fatal(err)
	}
	if int(info.Data_segs_out) <= segments { // and one for the Request
		t.Errorf("%d FPDUs in %d TCP segments, want %d at least: some were merged", fpdus, info.Data_segs_out, segments)
	}
	if int(info.Data_segs_out) > fpdus/2 {
		t.Errorf("%d FPDUs in %d TCP segments: small ones do not share", fpdus, info.Data_segs_out)
	}
}

// TestSegmentsGrow: TCP's segments are larger once the peer has offered a larger window, and so are
// FPDUs with a CRC. Smaller ones would be twice as many packets for the same bytes.
func TestSegmentsGrow(t *testing.T) {
	n := newNode(t)
	l := rawListen(t)
	h := n.resolve(l.at)
	q := n.qp(h, 0)
	n.do(h, &cmid.Connect{})
	r := l.accept(n)
	ask := r.frame(n)
	r.write(wire.AppendFrame(nil, &wire.Frame{
		Reply: true, Revision: 2, Flags: wire.FlagEnhanced | wire.FlagCRC, Control: wire.Control{IRD: 1, ORD: min(1, ask.Control.IRD)},
	}))
	n.wait(h, states.KindEstablished)
	segment := func() int {
		t.Helper()
		size, err := unix.GetsockoptInt(n.in.ids[h].conn.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
		if err != nil {
			t.Fatal(err)
		}
		return size
	}
	young := segment()
	const size, count = 1 << 20, 8
	for i := range count {
		q.send(uint64(i), string(make([]byte, size)))
	}
	largest, bytes := 0, 0
	turns(t, "all of it", func() bool {
		r.read()
		for {
			f, k, err := wire.ConsumeFPDU(r.got)
			if err != nil {
				return bytes >= count*size
			}
			if f.CRC != f.Checksum() {
				t.Fatalf("FPDU of %d bytes with CRC %#x", k, f.CRC)
			}
			r.got = r.got[k:]
			largest, bytes = max(largest, k), bytes+k
		}
	}, n)
	if now := segment(); now > young && largest <= young {
		t.Errorf("TCP's segments have grown from %d bytes to %d, the largest FPDU is %d", young, now, largest)
	}
	t.Logf("TCP's segments: %d bytes, then %d; the largest FPDU: %d", young, segment(), largest)
}

func TestSharedReceiveQueue(t *testing.T) {
	client, server := newNode(t), newNode(t)
	mr, err := server.in.dev.Alloc(4*64, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	recv := func(i int) verbs.RecvWR {
		return verbs.RecvWR{ID: uint64(i), SGE: verbs.SGE{MR: mr, Offset: uint32(i * 64), Length: 64}}
	}
	var srq verbs.SRQ
	empty := 0
	srq, err = server.in.dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 2, OnEmpty: func(verbs.QP) {
		if empty++; empty == 1 {
			if err := srq.PostRecv(recv(2)); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := srq.PostRecv(recv(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := srq.PostRecv(recv(3)); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("third receive in a queue of 2: %v, want ENOMEM", err)
	}
	lh, at := server.listen("127.0.0.1:0")
	h := client.resolve(at)
	cq := client.qp(h, 0)
	client.do(h, &cmid.Connect{})
	child := server.wait(lh, states.KindConnectRequest, client).child
	attr := qpAttr(server)
	attr.SRQ = srq
	qp, err := server.in.ids[child].CreateQP(attr)
	if err != nil {
		t.Fatal(err)
	}
	if err := qp.PostRecv(recv(3)); !errors.Is(err, unix.EINVAL) {
		t.Errorf("receive on a queue pair with a shared queue: %v, want EINVAL", err)
	}
	server.do(child, &cmid.Accept{})
	client.wait(h, states.KindEstablished, server)
	for i := range 3 {
		cq.send(uint64(i), fmt.Sprint("m", i))
	}
	turns(t, "three messages", func() bool { return len(server.wcs) == 3 }, client, server)
	if got := string(mr.Bytes[128:130]); got != "m2" || empty != 1 {
		t.Errorf("the receive posted at the last moment got %q; asked %d times", got, empty)
	}
	if err := srq.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("close in use: %v, want EBUSY", err)
	}
	cq.send(9, "one too many")
	turns(t, "it waits", func() bool { return srq.(*sharedQueue).waiting.n == 1 }, client, server)
	if empty != 2 {
		t.Errorf("asked %d times, want twice", empty)
	}
	server.do(child, &cmid.DestroyID{})
	if err := srq.Close(); err != nil {
		t.Error(err)
	}
}

func TestCompletionQueue(t *testing.T) {
	n := newNode(t)
	if err := n.cq.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if n.cq, err = n.in.dev.CreateCQ(1, n.poll); err != nil {
		t.Fatal(err)
	}
	h := n.resolve(cmid.MustAddr("127.0.0.1:9"))
	q := n.qp(h, 100) // more than the size for which the queue was created
	if err := n.cq.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("close in use: %v, want EBUSY", err)
	}
	if err := q.Destroy(); err != nil {
		t.Fatal(err)
	}
	var wc [64]verbs.WC
	if got := n.cq.Poll(wc[:]); got != 64 || wc[63].ID != 63 {
		t.Errorf("polled %d, last %+v, want 64 in order", got, wc[63])
	}
	turns(t, "the rest", func() bool { return len(n.wcs) == 36 }, n)
	if err := n.cq.Close(); err != nil {
		t.Error(err)
	}
	if _, err := n.in.dev.CreateCQ(1, nil); !errors.Is(err, unix.EINVAL) {
		t.Errorf("queue that notifies nobody: %v, want EINVAL", err)
	}
}

// TestForeignQueues: completion queues of another device are refused.
func TestForeignQueues(t *testing.T) {
	n, other := newNode(t), newNode(t)
	h := n.resolve(cmid.MustAddr("127.0.0.1:9"))
	srq, err := other.in.dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1})
	if err != nil {
		t.Fatal(err)
	}
	for what, attr := range map[string]verbs.QPInitAttr{
		"none":                 {},
		"another device's":     {SendCQ: n.cq, RecvCQ: other.cq},
		"another device's SRQ": {SendCQ: n.cq, RecvCQ: n.cq, SRQ: srq},
		"too long":             {SendCQ: n.cq, RecvCQ: n.cq, MaxSendWR: 1 << 20},
		"too many SGEs":        {SendCQ: n.cq, RecvCQ: n.cq, MaxSGE: 1000},
	} {
		if _, err := n.in.ids[h].CreateQP(attr); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v, want EINVAL", what, err)
		}
	}
	if n.in.ids[h].conn != nil || len(n.in.dev.qps) != 0 {
		t.Error("a refused queue pair left something behind")
	}
}

func TestMemoryRegions(t *testing.T) {
	n := newNode(t)
	seen := map[uint32]bool{}
	for range 1000 {
		mr, err := n.in.dev.Alloc(10, verbs.LocalWrite|verbs.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		if mr.LKey != mr.RKey || seen[mr.LKey] || mr.LKey == 0 || len(mr.Bytes) != 10 || mr.Addr+10 < mr.Addr {
			t.Fatalf("region %+v", mr)
		}
		seen[mr.LKey] = true
		if mr.LKey%2 == 0 {
			if err := n.in.dev.Free(mr); err != nil {
				t.Fatal(err)
			}
			if err := n.in.dev.Free(mr); !errors.Is(err, unix.EINVAL) {
				t.Fatalf("freed twice: %v, want EINVAL", err)
			}
		}
	}
	for _, size := range []int{0, -1} {
		if _, err := n.in.dev.Alloc(size, 0); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%d bytes: %v, want EINVAL", size, err)
		}
	}
	if a := n.in.dev.Attr(); n.in.dev.Name() != "iwarp0" || a.MaxSGE < 2 || a.MaxMessage == 0 || len(n.inst.Devices()) != 1 {
		t.Errorf("device %q %+v", n.in.dev.Name(), a)
	}
}

func TestPostErrors(t *testing.T) {
	n := newNode(t)
	p := connect(t, n, n, 0)
	mr := p.cq.in
	big := verbs.SGE{MR: mr, Length: 1 << 30}
	for what, wr := range map[string]verbs.SendWR{
		"outside its region": {SGL: []verbs.SGE{big}},
		"more SGEs":          {SGL: make([]verbs.SGE, 2)},
		"more inline":        {Inline: make([]byte, 257)},
	} {
		if err := p.cq.PostSend(&wr); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v, want EINVAL", what, err)
		}
	}
	if err := p.cq.PostRecv(verbs.RecvWR{SGE: big}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("receive outside its region: %v, want EINVAL", err)
	}
	for i := range 1025 {
		err := p.cq.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: mr, Length: 1}})
		if (i == 1024) != errors.Is(err, unix.ENOMEM) {
			t.Fatalf("receive %d of 1024: %v", i, err)
		}
	}
}
