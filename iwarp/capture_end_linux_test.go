package iwarp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/capture"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// writerFunc is a Writer of a capture.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// stuck is a Writer that blocks until it is released, and then keeps its input.
type stuck struct {
	bytes.Buffer
	entered, let chan struct{}
}

func newStuck() *stuck { return &stuck{entered: make(chan struct{}, 1<<16), let: make(chan struct{})} }

func (w *stuck) Write(b []byte) (int, error) {
	w.entered <- struct{}{}
	<-w.let
	return w.Buffer.Write(b)
}

// TestCaptureWriterBlocks: a Writer that blocks delays no connection. Packets without room are
// dropped and counted, and the file continues with a whole FPDU when the Writer does.
func TestCaptureWriterBlocks(t *testing.T) {
	for _, crc := range []bool{false, true} {
		w := newStuck()
		x := capturing(t, Config{CRC: crc}, CaptureConfig{Writer: w, Memory: 1})
		client, server := newNodeOf(t, x.drv), newNode(t)
		p := connect(t, client, server, 1)
		<-w.entered
		p.oneSided(1<<20, 2)
		dropped := x.Stats().Dropped
		if dropped == 0 || x.Stats().Bytes > 2*captureLeast {
			t.Fatalf("the Writer blocks, and the capture has %+v", x.Stats())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := x.Stop(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Stop with a Writer that blocks: %v", err)
		}
		close(w.let)
		if err := x.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.file = w.Buffer
		x.parse()
	}
}

// TestCaptureStopOfOneThatIsOver: Stop reports the outcome of a capture even if the context is
// done.
func TestCaptureStopOfOneThatIsOver(t *testing.T) {
	x := capturing(t, Config{}, CaptureConfig{Writer: writerFunc(func([]byte) (int, error) { return 0, unix.ENOSPC })})
	<-x.Done()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := x.Stop(ctx); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("Stop: %v, want ENOSPC", err)
		}
	}
}

// TestCaptureGap: after dropped packets, each direction continues with a whole FPDU, and its
// sequence numbers show how many bytes are missing.
func TestCaptureGap(t *testing.T) {
	for _, crc := range []bool{false, true} {
		gap(t, Config{CRC: crc}).judgeGap()
	}
}

// gap makes a capture whose Writer blocks while much is written and read, and then records 40
// messages.
func gap(t *testing.T, cfg Config) *captured {
	t.Helper()
	w := newStuck()
	x := capturing(t, cfg, CaptureConfig{Writer: w, Memory: 1})
	client, server := newNodeOf(t, x.drv), newNode(t)
	p := connect(t, client, server, 40)
	<-w.entered
	p.oneSided(1<<20, 1)
	p.fill()
	close(w.let)
	for x.waiting() > 0 {
		runtime.Gosched()
	}
	before := len(client.wcs) + 1 // the Write
	for i := range 20 {
		p.cq.send(uint64(i), strings.Repeat("c", 100*i))
		p.sq.send(uint64(i), strings.Repeat("s", 100*i))
	}
	turns(t, "messages", func() bool { return len(client.wcs) == before+40 }, client, server)
	p.disconnect()
	if err := x.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.file = w.Buffer
	x.parse()
	return x
}

// TestCaptureBeginsWhileFull: a connection that begins while the capture has no room is in the file
// as soon as there is room, like one that is older than the capture: with a handshake, which names
// it, and the MPA frames without which the rest could not be decoded.
func TestCaptureBeginsWhileFull(t *testing.T) {
	w := newStuck()
	x := capturing(t, Config{}, CaptureConfig{Writer: w, Memory: 1})
	client, server := newNodeOf(t, x.drv), newNode(t)
	lh, addr := server.listen("127.0.0.1:0")
	first := connectTo(t, client, server, lh, addr, 1000)
	<-w.entered
	first.oneSided(1<<20, 1)
	client.wcs, server.wcs = nil, nil
	for i, before := 1, x.Stats().Dropped; x.Stats().Dropped == before; i++ { // not even this fits
		first.cq.send(uint64(i), "x")
		turns(t, "a message", func() bool { return len(server.wcs) == i }, client, server)
	}
	client.wcs, server.wcs = nil, nil
	p := connectTo(t, client, server, lh, addr, 20)
	p.cq.send(1, "is not in the file")
	p.sq.send(1, "an answer: without one the client would send empty Writes, some of them later")
	turns(t, "a message", func() bool { return len(client.wcs) == 2 && len(server.wcs) == 2 }, client, server)
	close(w.let)
	for x.waiting() > 0 {
		runtime.Gosched()
	}
	for i := range 10 {
		p.cq.send(uint64(i), "is in the file")
		p.sq.send(uint64(i), "is in it, too")
	}
	turns(t, "messages", func() bool { return len(client.wcs) == 22 && len(server.wcs) == 22 }, client, server)
	p.disconnect()
	if err := x.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.file = w.Buffer
	x.parse()
	const syn = 2
	at := slices.IndexFunc(x.read.Packets, func(q capture.Packet) bool { return q.Comment == nameOf(p.ch) })
	if at < 0 || x.read.Packets[at].Flags != syn {
		t.Fatalf("the connection's handshake is not in the file: %d", at)
	}
	of := x.read.Packets[at]
	x.read.Packets = slices.DeleteFunc(x.read.Packets, func(q capture.Packet) bool {
		return q.From != of.From && q.From != of.To || q.To != of.From && q.To != of.To
	})
	s := x.streams()
	if len(s) != 1 || fpdus(s[0].out) != 10 || fpdus(s[0].in) != 10 {
		t.Errorf("%d streams; %d and %d FPDUs of the connection, want 10 and 10", len(s), fpdus(s[0].out), fpdus(s[0].in))
	}
}

// fill posts a Write of which the client's socket accepts only a part.
func (p *pair) fill() {
	p.client.t.Helper()
	cm, sm := p.client.alloc(16<<20, anyAccess), p.server.alloc(16<<20, anyAccess)
	p.cq.post(verbs.SendWR{Op: verbs.Write, SGL: whole(cm), RemoteAddr: sm.Addr, RKey: sm.RKey})
	turns(p.client.t, "a full socket", func() bool { return p.client.in.ids[p.ch].conn.blocked }, p.client)
}

// waiting returns how many bytes the Writer has not been given.
func (p *Capture) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.blocks)
}

// judgeGap checks that the bytes of each direction of the one connection match its sequence
// numbers, and that after each gap they begin with a whole FPDU.
func (x *captured) judgeGap() {
	x.t.Helper()
	all := x.rec.ended[0]
	for _, inbound := range []bool{false, true} {
		stream := all.out
		if inbound {
			stream = all.in
		}
		begins := boundariesOf(x.t, stream)
		var isn, next uint32
		gaps := 0
		for i, p := range x.read.Packets {
			switch {
			case p.Inbound != inbound:
				continue
			case p.Flags&2 != 0: // SYN
				isn, next = p.Seq+1, p.Seq+1
				continue
			case len(p.Payload) == 0:
				continue
			}
			off := int(p.Seq - isn)
			if p.Seq != next {
				gaps++
				if !slices.Contains(begins, off) {
					x.t.Errorf("packet %d, inbound %t, goes on at %d, in the middle of an FPDU", i, inbound, off)
				}
			}
			if !bytes.Equal(stream[off:off+len(p.Payload)], p.Payload) {
				x.t.Fatalf("packet %d has other bytes than the stream at %d", i, off)
			}
			next = p.Seq + uint32(len(p.Payload))
		}
		if gaps == 0 {
			x.t.Errorf("inbound %t: no gaps", inbound)
		}
	}
}

// TestCaptureWriterFails: after any failure of a Writer, the connection continues, the capture is
// over, and Stop returns the reason. Another capture may then begin.
func TestCaptureWriterFails(t *testing.T) {
	for name, w := range map[string]struct {
		write writerFunc
		want  string
		is    error
	}{
		"error":  {func([]byte) (int, error) { return 0, unix.ENOSPC }, "no space left", unix.ENOSPC},
		"short":  {func(b []byte) (int, error) { return len(b) - 1, nil }, "short write", io.ErrShortWrite},
		"panic":  {func([]byte) (int, error) { panic("oh") }, "panicked: oh", nil},
		"Goexit": {func([]byte) (int, error) { runtime.Goexit(); return 0, nil }, "ended its goroutine", nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := capturing(t, Config{}, CaptureConfig{Writer: w.write})
			client, server := newNodeOf(t, x.drv), newNode(t)
			p := connect(t, client, server, 1)
			p.oneSided(100_000, 1)
			<-x.Done()
			if err := x.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), w.want) || w.is != nil && !errors.Is(err, w.is) {
				t.Errorf("Stop: %v, want %q", err, w.want)
			}
			x.start(CaptureConfig{})
			p.oneSided(100_000, 1)
			x.stop()
			if len(x.read.Packets) < 5 {
				t.Errorf("the second capture has %d packets", len(x.read.Packets))
			}
		})
	}
}

// TestCaptureMaxBytes: the file ends when it is as large as it may become.
func TestCaptureMaxBytes(t *testing.T) {
	x := capturing(t, Config{}, CaptureConfig{MaxBytes: 300_000})
	client, server := newNodeOf(t, x.drv), newNode(t)
	p := connect(t, client, server, 1)
	p.oneSided(1<<20, 1)
	<-x.Done()
	x.stop()
	if n := x.file.Len(); n > 300_000 || n < 200_000 || x.Stats().Dropped == 0 {
		t.Errorf("the file has %d bytes, %+v", n, x.Stats())
	}
	if client.in.drv.capture.Load() != nil {
		t.Error("it goes on")
	}
}

// TestCaptureOne: a device has one capture, which needs a Writer.
func TestCaptureOne(t *testing.T) {
	x := capturing(t, Config{}, CaptureConfig{})
	if _, err := x.drv.StartCapture(CaptureConfig{Writer: io.Discard}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a second capture: %v", err)
	}
	x.stop()
	x.stop()
	if _, err := x.drv.StartCapture(CaptureConfig{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("without a Writer: %v", err)
	}
	if len(x.read.Packets) != 0 || x.read.Name != "iwarp0" {
		t.Errorf("an empty capture: %+v", x.read)
	}
}

// TestCaptureChoice: only connections whose addresses fit are captured.
func TestCaptureChoice(t *testing.T) {
	server := newNode(t)
	lh, addr := server.listen("127.0.0.1:0")
	_, other := server.listen("127.0.0.1:0")
	loopback, elsewhere := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")
	for _, c := range []struct {
		choice CaptureConfig
		want   int
	}{
		{CaptureConfig{PeerPort: addr.Port()}, 1},
		{CaptureConfig{PeerPort: other.Port()}, 0},
		{CaptureConfig{LocalPort: addr.Port()}, 0},
		{CaptureConfig{Peer: loopback, Local: loopback, PeerPort: addr.Port()}, 1},
		{CaptureConfig{Peer: elsewhere}, 0},
		{CaptureConfig{Local: elsewhere}, 0},
	} {
		x := capturing(t, Config{}, c.choice)
		client := newNodeOf(t, x.drv)
		connectTo(t, client, server, lh, addr, 1)
		x.stop()
		if got := x.Stats().Connections; got != c.want || (len(x.read.Packets) > 0) != (c.want > 0) {
			t.Errorf("%+v: %d connections, %d packets", c.choice, got, len(x.read.Packets))
		}
	}
}

// TestCaptureBothEnds: the file contains a connection of the device with itself once.
func TestCaptureBothEnds(t *testing.T) {
	x := capturing(t, Config{}, CaptureConfig{})
	client, server := newNodeOf(t, x.drv), newNodeOf(t, x.drv)
	for range 3 {
		p := connect(t, client, server, 1)
		p.disconnect()
		x.mu.Lock()
		if n := len(x.present); n != 0 {
			t.Errorf("%d connections have not left", n)
		}
		x.mu.Unlock()
	}
	x.stop()
	if got := x.Stats().Connections; got != 3 || len(x.streams()) != 3 {
		t.Errorf("%d connections, %d in the file, want 3", got, len(x.streams()))
	}
}

// TestCaptureNames: each connection has the number of its identifier.
func TestCaptureNames(t *testing.T) {
	c, s := capturing(t, Config{}, CaptureConfig{}), capturing(t, Config{}, CaptureConfig{})
	client, server := newNodeOf(t, c.drv), newNodeOf(t, s.drv)
	p := connect(t, client, server, 1)
	c.stop()
	s.stop()
	for _, e := range []struct {
		x    *captured
		want string
	}{{c, nameOf(p.ch)}, {s, nameOf(p.sh)}} {
		found := 0
		for _, packet := range e.x.read.Packets {
			if packet.Comment == e.want {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d packets have the comment %q, want 1", found, e.want)
		}
	}
}

// TestCaptureLater: a capture that begins while a connection is busy has its whole FPDUs from then
// on, behind a made up handshake, Request and Reply.
func TestCaptureLater(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for after := 1; after < 60; after += 7 {
			x := recording(t, Config{CRC: crc})
			client, server := newNodeOf(t, x.drv), newNode(t)
			p := connect(t, client, server, 40)
			cm, sm := client.alloc(1<<20, anyAccess), server.alloc(1<<20, anyAccess)
			for i := range 20 {
				p.cq.send(uint64(i), strings.Repeat("c", 100*i))
				p.sq.send(uint64(i), strings.Repeat("s", 100*i))
			}
			if after%2 == 0 {
				p.fill()
			} else {
				p.cq.post(verbs.SendWR{Op: verbs.Write, SGL: whole(cm), RemoteAddr: sm.Addr, RKey: sm.RKey})
			}
			p.cq.post(verbs.SendWR{Op: verbs.Read, SGL: whole(cm), RemoteAddr: sm.Addr, RKey: sm.RKey})
			for range after / 2 {
				for _, n := range []*node{client, server} {
					if err := n.loop.Turn(); err != nil {
						t.Fatal(err)
					}
				}
			}
			x.start(roomy)
			p.sq.send(100, "the last one")
			turns(t, "all", func() bool { return len(client.wcs) == 43 && len(server.wcs) == 41 }, client, server)
			p.disconnect()
			x.stop()
			x.judgeLater()
		}
	}
}

// judgeLater checks that each direction of the one connection is a synthetic MPA frame and the end
// of the bytes on the socket, from an FPDU's beginning.
func (x *captured) judgeLater() {
	x.t.Helper()
	got := x.streams()
	if len(got) != 1 {
		x.t.Fatalf("%d connections", len(got))
	}
	for i, d := range [2][2][]byte{{got[0].out, x.rec.ended[0].out}, {got[0].in, x.rec.ended[0].in}} {
		tail := d[0][len(frameOf(madeUpFrame)):]
		if !bytes.HasSuffix(d[1], tail) {
			x.t.Fatalf("direction %d: %d bytes that were not on the socket", i, len(tail))
		}
		at := len(d[1]) - len(tail)
		if !slices.Contains(boundariesOf(x.t, d[1]), at) {
			x.t.Errorf("direction %d begins at %d of %d, in the middle of an FPDU", i, at, len(d[1]))
		}
	}
}

// madeUpFrame has the length of those that a capture makes up.
var madeUpFrame = wire.Frame{Revision: 1}

// boundariesOf returns where the frame and the FPDUs of a stream begin, and its length.
func boundariesOf(t testing.TB, b []byte) (at []int) {
	t.Helper()
	_, n, err := wire.ConsumeFrame(b)
	for end := 0; ; {
		if err != nil {
			t.Fatal(err)
		}
		end += n
		if at = append(at, end); end == len(b) {
			return at
		}
		_, n, err = wire.ConsumeFPDU(b[end:])
	}
}

func nameOf(h cmid.Handle) string { return fmt.Sprint("rdma_cm_id ", h) }

// TestCaptureMigrates: a request that moves to another loop, and one that is given up in between,
// are captured whole, to their FIN.
func TestCaptureMigrates(t *testing.T) {
	x := capturing(t, Config{}, roomy)
	one, two := newNodeOf(t, x.drv), newNodeOf(t, x.drv)
	two.next = 1000 // handles are process-wide
	_, at := one.listen("127.0.0.1:0")
	moved, lost := rawDial(t, at), rawDial(t, at)
	for _, r := range []*raw{moved, lost} {
		r.write(request("hello"))
	}
	turns(t, "requests", func() bool { return len(one.events) == 2 }, one)
	h := one.events[0].child
	two.attach(one.detach(h))
	two.qp(h, 1)
	two.do(h, &cmid.Accept{})
	if f := moved.frame(one, two); f.Flags&wire.FlagReject != 0 {
		t.Errorf("the answer is %+v", f)
	}
	moved.write(fpduOf(1, "a message"))
	turns(t, "a message", func() bool { return len(two.wcs) == 1 }, one, two)
	one.detach(one.events[1].child).Destroy()
	if f := lost.frame(one, two); f.Flags&wire.FlagReject == 0 {
		t.Errorf("the answer is %+v", f)
	}
	for _, n := range []*node{one, two} {
		if err := n.inst.Close(); err != nil {
			t.Error(err)
		}
	}
	x.stop()
	x.judge()
	if n := x.resets(); n > 0 {
		t.Errorf("%d resets", n)
	}
}
