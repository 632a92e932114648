package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// Recording is a good exchange: the bytes of each side, split into the MPA frame and the FPDUs.
type Recording struct {
	Initiator, Responder [][]byte
}

// Record accepts the next connection to l, relays it to addr until both sides have ended it, and
// records the bytes. Closing l ends Record only before there is a connection. A done context ends
// it at any time.
func Record(ctx context.Context, l *net.TCPListener, addr string) (Recording, error) {
	var r Recording
	in, err := l.AcceptTCP()
	if err != nil {
		return r, err
	}
	defer in.Close()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return r, err
	}
	out := c.(*net.TCPConn)
	defer out.Close()
	defer context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })()
	type half struct {
		said []byte
		err  error
	}
	back := make(chan half, 1)
	go func() {
		b, err := relayBytes(in, out)
		back <- half{b, err}
	}()
	there, err := relayBytes(out, in)
	h := <-back
	if err = errors.Join(err, h.err); err != nil {
		return r, err
	}
	r.Initiator, err = splitUnits(there)
	if err == nil {
		r.Responder, err = splitUnits(h.said)
	}
	return r, err
}

// relayBytes copies from's bytes to to, and returns them.
func relayBytes(to, from *net.TCPConn) ([]byte, error) {
	var said []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		said = append(said, buf[:n]...)
		if _, werr := to.Write(buf[:n]); werr != nil {
			return said, werr
		}
		if errors.Is(err, io.EOF) {
			return said, to.CloseWrite()
		}
		if err != nil {
			return said, err
		}
	}
}

// splitUnits splits a stream into its frame and its FPDUs.
func splitUnits(said []byte) ([][]byte, error) {
	_, n, err := wire.ConsumeFrame(said)
	if err != nil {
		return nil, fmt.Errorf("hostile: recorded frame: %w", err)
	}
	list := [][]byte{said[:n:n]}
	for said = said[n:]; len(said) > 0; said = said[n:] {
		if _, n, err = wire.ConsumeFPDU(said); err != nil {
			return nil, fmt.Errorf("hostile: recorded FPDU %d: %w", len(list), err)
		}
		list = append(list, said[:n:n])
	}
	return list, nil
}

// Replay makes an exchange that sends units as one or the other side. units are a frame and the
// FPDUs that follow it. Where the recorded side waited for the other, Replay waits too, but no
// longer than patience, because after a mutation the answer may never come. Its Want is Anything.
func Replay(units [][]byte, side Side, patience time.Duration) *Exchange {
	x := &Exchange{Name: "replay", Rule: "whatever was done to it", Side: side, raw: true}
	x.run = func(p *Peer) {
		if len(units) == 0 {
			p.sendFIN()
			return
		}
		if !p.dials {
			p.readMPAFrame()
		}
		p.write(units[0])
		if p.dials {
			p.withPatience(patience, func() { p.readMPAFrame() })
		}
		p.crc = p.seen.Frame != nil && p.seen.Frame.Flags&wire.FlagCRC != 0
		if f, _, err := wire.ConsumeFrame(units[0]); err == nil && f.Flags&wire.FlagCRC != 0 {
			p.crc = true
		}
		p.writeUnits(patience, units[1:])
		p.sendFIN()
	}
	return x
}

// writeUnits writes units. Before the n-th Read Response it waits for the n-th Read Request,
// because the other side may be slower.
func (p *Peer) writeUnits(patience time.Duration, units [][]byte) {
	asked, answered := 0, 0
	for _, u := range units {
		if len(u) > 3 && u[2]&0x80 != 0 && wire.Opcode(u[3]&0x0f) == wire.OpReadResponse {
			p.withPatience(patience, func() {
				for asked <= answered {
					h, _, ok := p.fpduIn()
					if !ok {
						asked = len(units) // do not wait for further Requests
					} else if h.Opcode == wire.OpReadRequest {
						asked++
					}
				}
			})
			if u[2]&0x40 != 0 {
				answered++
			}
		}
		p.write(u)
	}
}

// withPatience calls do with patience as the time limit. It is for a do that waits for something
// that may never come.
func (p *Peer) withPatience(patience time.Duration, do func()) {
	defer func(d time.Duration) { p.o.Timeout = d }(p.o.Timeout)
	p.o.Timeout = patience
	do()
}
