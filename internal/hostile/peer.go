package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// Peer is the hostile end of one connection.
type Peer struct {
	o     Options
	conn  *net.TCPConn
	dials bool
	crc   bool
	deaf  bool   // does not read until the end of the stream
	in    []byte // read but not yet parsed
	seen  Result
}

// write sends b. It ignores errors, because the other side may have hung up.
func (p *Peer) write(b ...[]byte) {
	_ = p.conn.SetWriteDeadline(time.Now().Add(p.o.Timeout))
	for _, b := range b {
		if _, err := p.conn.Write(b); err != nil {
			return
		}
	}
}

// writeSlowly sends b byte by byte, each in a separate TCP segment.
func (p *Peer) writeSlowly(b []byte) {
	for i := range b {
		p.write(b[i : i+1])
		time.Sleep(100 * time.Microsecond)
	}
}

// sendFIN ends the stream to the other side. The peer continues to read.
func (p *Peer) sendFIN() { _ = p.conn.CloseWrite() }

// closeWithReset closes the connection with an RST.
func (p *Peer) closeWithReset() {
	_ = p.conn.SetLinger(0)
	_ = p.conn.Close()
	p.seen.End, p.deaf = Left, true
}

// readMore reads some bytes. It returns false at the end of the other side's stream.
func (p *Peer) readMore() bool {
	if p.seen.End != StillOpen {
		return false
	}
	_ = p.conn.SetReadDeadline(time.Now().Add(p.o.Timeout))
	const chunk = 16 << 10
	p.in = slices.Grow(p.in, chunk)
	n, err := p.conn.Read(p.in[len(p.in) : len(p.in)+chunk])
	p.in = p.in[:len(p.in)+n]
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		p.seen.End = FIN
	case errors.Is(err, unix.ECONNRESET):
		p.seen.End = Reset
	default: // nothing arrived, or ctx was done
		return false
	}
	return n > 0
}

// recordWrong records something that the other side must never do. It keeps only the first.
func (p *Peer) recordWrong(format string, args ...any) {
	if p.seen.Wrong == "" {
		p.seen.Wrong = fmt.Sprintf(format, args...)
	}
}

// readMPAFrame reads the other side's MPA frame. It checks that the frame does not crash a kernel
// with soft-iWARP: if S is set there must be a control word, and no more than 256 bytes may follow
// the header.
func (p *Peer) readMPAFrame() *wire.Frame {
	for {
		f, n, err := wire.ConsumeFrame(p.in)
		switch {
		case err == nil:
			if f.Reply != p.dials {
				p.recordWrong("frame %+v of the wrong kind", f)
			}
			if n > wire.FrameLen+256 {
				p.recordWrong("a frame of %d bytes", n)
			}
			if f.Flags&^(wire.FlagCRC|wire.FlagReject|wire.FlagEnhanced) != 0 {
				p.recordWrong("a frame with flags %#x", f.Flags)
			}
			p.in = p.in[n:]
			p.seen.Frame = &f
			return &f
		case !errors.Is(err, wire.ErrShort):
			if p.dials { // a Terminate must not answer a Request
				p.recordWrong("%v", err)
			}
			return nil
		}
		if !p.readMore() {
			if len(p.in) > 0 && p.seen.End == FIN {
				p.recordWrong("half a frame: %x", p.in)
			}
			return nil
		}
	}
}

// setUp sets the connection up correctly. It returns false if that fails.
func (p *Peer) setUp() bool {
	if p.dials {
		return p.exchangeRequest(wire.FlagEnhanced, 2, control)
	}
	f := p.readMPAFrame()
	if f == nil {
		return false
	}
	p.crc = p.o.CRC || f.Flags&wire.FlagCRC != 0
	p.write(p.newReply(f))
	return true
}

// exchangeRequest sends a Request and reads the Reply. It returns true if the Reply accepts.
func (p *Peer) exchangeRequest(flags wire.Flags, rev uint8, c wire.Control) bool {
	p.write(p.newRequest(flags, rev, c, nil))
	f := p.readMPAFrame()
	if f == nil || f.Flags&wire.FlagReject != 0 {
		return false
	}
	p.crc = f.Flags&wire.FlagCRC != 0
	return true
}

// control is the control word of a well-behaved peer.
var control = wire.Control{IRD: Depth, ORD: Depth}

// newRequest makes a Request. It asks for CRC if Options do.
func (p *Peer) newRequest(flags wire.Flags, rev uint8, c wire.Control, private []byte) []byte {
	if p.o.CRC {
		flags |= wire.FlagCRC
	}
	return wire.AppendFrame(nil, &wire.Frame{Flags: flags, Revision: rev, Control: c, Private: private})
}

// newReply makes a Reply that accepts f.
func (p *Peer) newReply(f *wire.Frame) []byte {
	r := wire.Frame{Reply: true, Revision: f.Revision, Flags: f.Flags & wire.FlagEnhanced, Control: control}
	if f.Control.PeerToPeer {
		r.Control.PeerToPeer, r.Control.RTRWrite = true, true
	}
	if p.crc || p.o.CRC {
		r.Flags |= wire.FlagCRC
	}
	return wire.AppendFrame(nil, &r)
}

// frameULPDU frames a ULPDU.
func (p *Peer) frameULPDU(ulpdu []byte) []byte {
	f := wire.FPDU{ULPDU: ulpdu}
	if p.crc {
		f.CRC = f.Checksum()
	}
	return wire.AppendFPDU(nil, &f)
}

// sendGood sends correct FPDUs.
func (p *Peer) sendGood(ulpdus ...[]byte) {
	for _, u := range ulpdus {
		p.write(p.frameULPDU(u))
	}
}

// sendBad sends an FPDU with a wrong ULPDU, and records that as Result.Offending.
func (p *Peer) sendBad(ulpdu []byte) {
	p.seen.Offending = ulpdu
	p.write(p.frameULPDU(ulpdu))
}

// fpduIn reads the other side's next FPDU.
func (p *Peer) fpduIn() (wire.Header, []byte, bool) {
	for {
		f, n, err := wire.ConsumeFPDU(p.in)
		if err == nil {
			return p.checkFPDU(&f, n)
		}
		if !p.readMore() {
			return wire.Header{}, nil, false
		}
	}
}

// checkFPDU checks an FPDU of n bytes.
func (p *Peer) checkFPDU(f *wire.FPDU, n int) (wire.Header, []byte, bool) {
	p.in = p.in[n:]
	h, k, err := wire.ConsumeHeader(f.ULPDU)
	// the other side's set-up failed
	unagreed := h.Opcode == wire.OpTerminate && p.seen.FPDUs == 0 && f.CRC == 0
	if p.crc && f.CRC != f.Checksum() && !unagreed {
		p.recordWrong("%v with CRC %#x, should be %#x", h.Opcode, f.CRC, f.Checksum())
	}
	if err != nil {
		p.recordWrong("%v", err)
		return h, nil, false
	}
	if p.seen.Terminate != nil {
		p.recordWrong("%v behind a Terminate", h.Opcode)
	}
	p.seen.FPDUs++
	if h.Opcode.Send() && h.Last {
		p.seen.Sends++
	}
	if h.Opcode == wire.OpTerminate {
		t, _, err := wire.ConsumeTerminate(f.ULPDU[k:])
		if err != nil || t.Reversed || h.QN != 2 || h.MSN != 1 || h.MO != 0 || !h.Last {
			p.recordWrong("Terminate %x: %v", f.ULPDU, err)
		}
		p.seen.Terminate = &t
	}
	return h, f.ULPDU[k:], true
}

// readToEnd reads until the other side ends the connection.
func (p *Peer) readToEnd() {
	if p.deaf {
		return
	}
	if p.seen.Frame == nil && p.readMPAFrame() == nil && p.dials {
		for p.readMore() { // the remaining bytes cannot be interpreted
			p.in = nil
		}
		return
	}
	for {
		if _, _, ok := p.fpduIn(); !ok {
			break
		}
	}
	for p.readMore() {
		p.in = nil
	}
	if p.seen.End == FIN && len(p.in) > 0 && p.seen.Wrong == "" {
		p.recordWrong("%d bytes of an FPDU that was cut short: %.40x", len(p.in), p.in)
	}
}

// awaitSetUp waits until the other side has finished set-up. Messages that arrive earlier may be
// reported differently.
func (p *Peer) awaitSetUp() {
	if !p.dials {
		p.fpduIn() // its RTR
	}
}

// awaitClose keeps the connection after the other side's FIN, until the other side has closed its
// socket.
func (p *Peer) awaitClose() {
	p.readToEnd()
	p.deaf = true
	for end := time.Now().Add(p.o.Timeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := p.conn.Write([]byte{0}); err != nil {
			return
		}
	}
	p.recordWrong("the socket is still there %v after the end", p.o.Timeout)
}

// waitIdle neither reads nor writes for a while. A TCP that gives up on a closed window sends
// nothing.
func (p *Peer) waitIdle() {
	time.Sleep(3 * time.Second)
	p.seen.End, p.deaf = Left, true
}

// Dial runs x against addr ("host:port"). When ctx is done, it closes the connection.
func (x *Exchange) Dial(ctx context.Context, addr string, o Options) (Result, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return Result{}, err
	}
	return x.runOn(ctx, c.(*net.TCPConn), o, true), nil
}

// Serve runs x against every connection to l, one after the other, until l is closed, its deadline
// has passed, or ctx is done. It returns the results in order.
func (x *Exchange) Serve(ctx context.Context, l *net.TCPListener, o Options) []Result {
	defer context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })()
	var all []Result
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return all
		}
		all = append(all, x.runOn(ctx, c, o, false))
	}
}

func (x *Exchange) runOn(ctx context.Context, c *net.TCPConn, o Options, dials bool) Result {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	o.CRC = o.CRC || x.CRC
	p := &Peer{o: o, conn: c, dials: dials}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if x.raw || p.setUp() {
		x.run(p)
		p.readToEnd()
	}
	return p.seen
}
