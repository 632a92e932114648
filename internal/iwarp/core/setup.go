package core

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// BeginSetup begins the set-up: an initiator queues its Request, a responder waits for one.
func (c *Conn) BeginSetup(now time.Time) {
	if c.state != stIdle {
		return
	}
	c.phaseAt = now.Add(c.cfg.SetupTimeout)
	if !c.cfg.Initiator {
		c.state = stRequest
		return
	}
	c.state = stReply
	f := wire.Frame{Revision: c.cfg.Revision, Private: c.cfg.PrivateData}
	if c.cfg.CRC {
		f.Flags |= wire.FlagCRC
	}
	if f.Revision >= 2 {
		f.Flags |= wire.FlagEnhanced
		p2p := c.cfg.PeerToPeer
		f.Control = wire.Control{PeerToPeer: p2p, RTRWrite: p2p, RTRRead: p2p, IRD: c.cfg.IRD, ORD: c.cfg.ORD}
	}
	c.tx.raw = wire.AppendFrame(nil, &f)
	c.cfg.PrivateData = nil
}

// inputFrame takes bytes of the peer's MPA frame and returns those that follow the frame.
func (c *Conn) inputFrame(now time.Time, b []byte) []byte {
	for {
		need := wire.FrameLen
		if len(c.mpa) >= need {
			need += int(binary.BigEndian.Uint16(c.mpa[wire.FrameLen-2:]))
		}
		if c.mpa == nil {
			c.mpa = make([]byte, 0, min(len(b), wire.FrameLen+wire.ControlLen+MaxPrivateData))
		}
		k := min(need-len(c.mpa), len(b))
		c.mpa, b = append(c.mpa, b[:k]...), b[k:]
		f, _, err := wire.ConsumeFrame(c.mpa)
		if errors.Is(err, wire.ErrShort) {
			if len(b) > 0 {
				continue
			}
			return nil
		}
		if errors.Is(err, wire.ErrKey) {
			err = fmt.Errorf("the peer does not speak iWARP (MPA), its first bytes are %q%s: %w", c.mpa, guessProtocol(c.mpa), err)
		}
		c.mpa = nil
		if c.cfg.Initiator {
			c.handleReply(now, &f, err)
			return b
		}
		if len(b) > 0 && err == nil {
			c.closeSetup("request", "bytes behind the Request, before its Reply")
			return nil
		}
		c.handleRequest(now, &f, err)
		return b
	}
}

// handleRequest judges a Request.
func (c *Conn) handleRequest(now time.Time, f *wire.Frame, err error) {
	c.rev, c.reqFlags, c.peer, c.asked = f.Revision, f.Flags, f.Control, f.Enhanced()
	short := err != nil && f.Enhanced() && f.Revision <= wire.MaxRevision && !f.Reply
	switch {
	case short:
		c.rejectRequest(now, &Error{Op: "request", Errno: unix.EPROTO, Text: err.Error()})
		return
	case err != nil:
		c.closeSetup("request", err.Error())
		return
	case f.Reply:
		c.closeSetup("request", "a Reply where a Request belongs")
		return
	case f.Flags&wire.FlagMarkers != 0:
		c.rejectRequest(now, &Error{Op: "request", Errno: unix.ECONNREFUSED, Text: "the initiator demands markers"})
		return
	}
	c.state, c.phaseAt = stAnswer, time.Time{}
	c.up.Request(Request{
		PrivateData: f.Private, IRD: f.Control.IRD, ORD: f.Control.ORD, Revision: f.Revision, Enhanced: c.asked,
		PeerToPeer: f.Control.PeerToPeer, CRC: f.Flags&wire.FlagCRC != 0,
	})
}

// replyFrame returns the Reply's frame with the fields that the Request determines.
func (c *Conn) replyFrame(private []byte) wire.Frame {
	f := wire.Frame{Reply: true, Revision: c.rev, Private: private}
	if c.asked {
		f.Flags |= wire.FlagEnhanced
	}
	return f
}

func (c *Conn) checkAnswer(private []byte, ird, ord uint16) error {
	switch {
	case c.gone:
		return fmt.Errorf("iwarp: the initiator has left: %w", unix.ECONNRESET)
	case c.state != stAnswer:
		return fmt.Errorf("iwarp: no Request to answer: %s: %w", c.state, unix.EINVAL)
	}
	return checkParam(private, ird, ord)
}

// Accept answers the Request with a Reply that has private data (at most MaxPrivateData bytes) and
// this side's limits. ord is lowered to the number of Reads that the initiator serves. If the
// Request states no limits, ird is at least UnagreedIRD. Accept fails with ECONNRESET if the
// initiator is gone, and with EINVAL if there is no Request to answer.
func (c *Conn) Accept(now time.Time, private []byte, ird, ord uint16) error {
	if err := c.checkAnswer(private, ird, ord); err != nil {
		return err
	}
	if c.asked {
		ord = min(ord, c.peer.IRD) // wire.NotNegotiated is larger than any ord
	} else {
		ird = max(ird, UnagreedIRD)
	}
	c.ird, c.ord = ird, ord
	f := c.replyFrame(private)
	c.crc = c.cfg.CRC || c.reqFlags&wire.FlagCRC != 0
	if c.crc {
		f.Flags |= wire.FlagCRC
	}
	f.Control = wire.Control{IRD: ird, ORD: ord}
	if c.asked && c.peer.PeerToPeer {
		c.p2p = true
		read := c.peer.RTRRead && !c.peer.RTRWrite
		f.Control.PeerToPeer, f.Control.RTRWrite, f.Control.RTRRead = true, !read, read
	}
	c.tx.raw, c.tx.waits = wire.AppendFrame(nil, &f), true
	c.state, c.phaseAt = stAccepted, now.Add(c.cfg.SetupTimeout)
	return nil
}

// Reject answers the Request with a rejecting Reply and ends the connection. It calls Closed(nil)
// before it returns. Errors as for Accept.
func (c *Conn) Reject(now time.Time, private []byte) error {
	if err := c.checkAnswer(private, 0, 0); err != nil {
		return err
	}
	c.sendReject(now, private)
	c.closeProtocol(nil)
	return nil
}

// rejectRequest rejects the Request without asking the owner.
func (c *Conn) rejectRequest(now time.Time, err *Error) {
	c.sendReject(now, nil)
	c.closeProtocol(err)
}

// sendReject queues the rejecting Reply. Its control word repeats the initiator's numbers.
func (c *Conn) sendReject(now time.Time, private []byte) {
	f := c.replyFrame(private)
	f.Flags |= wire.FlagReject
	f.Control = wire.Control{IRD: c.peer.IRD, ORD: c.peer.ORD}
	c.startLinger(now, wire.AppendFrame(nil, &f), finAfterError)
}

// rawSent is called when a raw frame has been sent. Without peer-to-peer, a responder's connection
// is established when its Reply has been sent.
func (c *Conn) rawSent(now time.Time) {
	if c.state != stAccepted || c.p2p {
		return
	}
	c.tx.wireAt = now.Add(holdOff)
	c.reportEstablished(nil)
}

// reportEstablished makes the connection usable and reports it.
func (c *Conn) reportEstablished(private []byte) {
	c.state, c.phaseAt = stOpen, time.Time{}
	c.up.Established(private, c.ird, c.ord)
}

// handleReply judges a Reply.
func (c *Conn) handleReply(now time.Time, f *wire.Frame, err error) {
	e := &Error{Op: "reply", Errno: unix.EINVAL}
	rev2 := c.cfg.Revision >= 2
	switch {
	case err != nil:
		e.Text = err.Error()
		c.replyFault(now, e, 4)
	case !f.Reply:
		e.Text = "a Request where a Reply belongs"
		c.replyFault(now, e, 4)
	case f.Flags&wire.FlagReject != 0:
		e.Rejected, e.Errno, e.Text = true, unix.ECONNRESET, "rejected by the peer"
		c.closeRejected(f.Private, e)
	case rev2 && !f.Enhanced():
		e.Errno, e.Text = unix.ECONNRESET, fmt.Sprintf("revision %d without a control word to our revision 2 Request", f.Revision)
		c.closeRejected(f.Private, e)
	case !rev2 && f.Revision >= 2:
		e.Text = fmt.Sprintf("revision %d to our revision %d Request", f.Revision, c.cfg.Revision)
		c.closeRejected(nil, e)
	case f.Flags&wire.FlagMarkers != 0:
		e.Errno, e.Text = unix.ECONNREFUSED, "the responder demands markers"
		c.closeRejected(nil, e)
	default:
		c.applyAccept(now, f, e)
	}
}

// closeRejected ends an initiator's set-up with a FIN.
func (c *Conn) closeRejected(private []byte, e *Error) {
	c.closeNow, c.phaseAt = true, time.Time{}
	c.reportRejected(private, e)
}

// replyFault ends an initiator's set-up with a Terminate of the MPA layer.
func (c *Conn) replyFault(now time.Time, e *Error, code uint8) {
	e.Protocol, e.Sent, e.Layer, e.Type, e.Code = true, true, wire.LayerMPA, 0, code
	c.crc = c.crc || c.cfg.CRC
	// the rest of the Request, in case the peer has answered before it had all of it
	raw := c.tx.partialFPDU()
	c.startLinger(now, c.appendTerminate(raw, &fault{err: *e}), finAfterError)
	c.reportRejected(nil, e)
}

// applyAccept applies an accepting Reply: the limits, CRC, and the ready-to-receive message that it
// demands. A responder that announces more Reads than this side has offered to serve gets them, up
// to UnagreedIRD, as from soft-iWARP and cxgb4 (relaxed_ird_negotiation).
func (c *Conn) applyAccept(now time.Time, f *wire.Frame, e *Error) {
	c.crc = c.cfg.CRC || f.Flags&wire.FlagCRC != 0
	c.ird, c.ord = c.cfg.IRD, c.cfg.ORD
	if f.Enhanced() {
		w := f.Control
		if w.ORD != wire.NotNegotiated {
			if w.ORD > max(c.ird, UnagreedIRD) {
				e.Text = fmt.Sprintf("the responder wants %d Reads outstanding, more than our %d", w.ORD, max(c.ird, UnagreedIRD))
				c.replyFault(now, e, 6)
				return
			}
			c.ird = max(c.ird, w.ORD)
		}
		c.ord = min(c.ord, w.IRD)
		if c.cfg.PeerToPeer && w.PeerToPeer {
			switch {
			case w.RTRWrite:
				c.tx.ctl |= ctlWrite
			case w.RTRRead:
				c.tx.ctl |= ctlRead
				c.rx.rtrOut = true
			default:
				e.Text = "the responder chose none of the ready-to-receive messages we offered"
				c.replyFault(now, e, 7)
				return
			}
		}
	} else {
		c.ird = max(c.ird, UnagreedIRD)
	}
	c.reportEstablished(f.Private)
}

// guessProtocol returns, in brackets, the name of the protocol that b looks like, if it is one that
// is often sent to a wrong port.
func guessProtocol(b []byte) string {
	for _, p := range [...]struct{ prefix, name string }{
		{"GET ", "HTTP"},
		{"HEAD ", "HTTP"},
		{"POST ", "HTTP"},
		{"PUT ", "HTTP"},
		{"DELETE ", "HTTP"},
		{"OPTIONS ", "HTTP"},
		{"CONNECT ", "HTTP"},
		{"PRI * HTTP", "HTTP/2"},
		{"HTTP/", "HTTP"},
		{"\x16\x03", "TLS"},
		{"SSH-", "SSH"},
		{"PROXY ", "a proxy"},
		{"\r\n\r\n\x00\r\nQUIT\n", "a proxy"},
	} {
		if bytes.HasPrefix(b, []byte(p.prefix)) {
			return " (" + p.name + ")"
		}
	}
	return ""
}
