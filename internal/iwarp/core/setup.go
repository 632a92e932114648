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

// setup is MPA's exchange of Request and Reply (RFC 5044, RFC 6581): what this side asks for, and
// its judgement of the peer's frame. The state is the connection's.
type setup struct {
	initiator  bool
	revision   uint8 // of the Request
	peerToPeer bool  // an initiator asks for the peer-to-peer model
	crc        bool  // this side asks for CRC
	ird, ord   uint16
	private    []byte // an initiator's
	timeout    time.Duration
	frame      []byte // the peer's frame as far as it is here

	// of a responder
	left     bool // the initiator left before it was answered
	enhanced bool // the Request had the control word
	flags    wire.Flags
	peer     wire.Control
}

// terms are what Request and Reply have agreed on.
type terms struct {
	ird, ord uint16
	crc      bool
	rtr      ctl // the initiator's ready-to-receive message
}

// request returns an initiator's Request.
func (s *setup) request() []byte {
	f := wire.Frame{Revision: s.revision, Private: s.private}
	if s.crc {
		f.Flags |= wire.FlagCRC
	}
	if f.Revision >= 2 {
		f.Flags |= wire.FlagEnhanced
		p2p := s.peerToPeer
		f.Control = wire.Control{PeerToPeer: p2p, RTRWrite: p2p, RTRRead: p2p, IRD: s.ird, ORD: s.ord}
	}
	s.private = nil
	return wire.AppendFrame(nil, &f)
}

// consume takes bytes of the peer's frame, and returns those that follow it, and the frame once it
// is complete or known to be wrong.
func (s *setup) consume(b []byte) (rest []byte, f wire.Frame, done bool, err error) {
	for {
		need := wire.FrameLen
		if len(s.frame) >= need {
			need += int(binary.BigEndian.Uint16(s.frame[wire.FrameLen-2:]))
		}
		if s.frame == nil {
			s.frame = make([]byte, 0, min(len(b), wire.FrameLen+wire.ControlLen+MaxPrivateData))
		}
		k := min(need-len(s.frame), len(b))
		s.frame, b = append(s.frame, b[:k]...), b[k:]
		f, _, err = wire.ConsumeFrame(s.frame)
		if errors.Is(err, wire.ErrShort) {
			if len(b) > 0 {
				continue
			}
			return nil, f, false, nil
		}
		if errors.Is(err, wire.ErrKey) {
			err = fmt.Errorf("the peer does not speak iWARP (MPA), its first bytes are %q%s: %w", s.frame, guessProtocol(s.frame), err)
		}
		s.frame = nil
		return b, f, true, err
	}
}

// judgeRequest judges a Request, or the error in it. reject is true if a rejecting Reply answers a
// wrong one.
func (s *setup) judgeRequest(f *wire.Frame, err error) (r Request, reject bool, e *Error) {
	s.revision, s.flags, s.peer, s.enhanced = f.Revision, f.Flags, f.Control, f.Enhanced()
	switch {
	case err != nil:
		return r, f.Enhanced() && f.Revision <= wire.MaxRevision && !f.Reply, requestError(unix.EPROTO, err.Error())
	case f.Reply:
		return r, false, requestError(unix.EPROTO, "a Reply where a Request belongs")
	case f.Flags&wire.FlagMarkers != 0:
		return r, true, requestError(unix.ECONNREFUSED, "the initiator demands markers")
	}
	return Request{
		PrivateData: f.Private, IRD: f.Control.IRD, ORD: f.Control.ORD, Revision: f.Revision, Enhanced: s.enhanced,
		PeerToPeer: f.Control.PeerToPeer, CRC: f.Flags&wire.FlagCRC != 0,
	}, false, nil
}

func requestError(errno unix.Errno, text string) *Error {
	return &Error{Op: "request", Errno: errno, Text: text}
}

// checkAnswer checks that there is a Request to answer.
func (s *setup) checkAnswer(st state, private []byte, ird, ord uint16) error {
	switch {
	case s.left:
		return fmt.Errorf("iwarp: the initiator has left: %w", unix.ECONNRESET)
	case st != stAnswer:
		return fmt.Errorf("iwarp: no Request to answer: %s: %w", st, unix.EINVAL)
	}
	return checkParam(private, ird, ord)
}

// reply returns a Reply's frame with the fields that the Request determines.
func (s *setup) reply(private []byte) wire.Frame {
	f := wire.Frame{Reply: true, Revision: s.revision, Private: private}
	if s.enhanced {
		f.Flags |= wire.FlagEnhanced
	}
	return f
}

// accept returns the accepting Reply.
func (s *setup) accept(private []byte, ird, ord uint16) (reply []byte, t terms) {
	if s.enhanced {
		ord = min(ord, s.peer.IRD) // wire.NotNegotiated is larger than any ord
	} else {
		ird = max(ird, UnagreedIRD)
	}
	t = terms{ird: ird, ord: ord, crc: s.crc || s.flags&wire.FlagCRC != 0}
	f := s.reply(private)
	if t.crc {
		f.Flags |= wire.FlagCRC
	}
	f.Control = wire.Control{IRD: ird, ORD: ord}
	if s.awaitsRTR() {
		read := s.peer.RTRRead && !s.peer.RTRWrite
		f.Control.PeerToPeer, f.Control.RTRWrite, f.Control.RTRRead = true, !read, read
	}
	return wire.AppendFrame(nil, &f), t
}

// awaitsRTR reports whether the initiator owes a responder the first FPDU.
func (s *setup) awaitsRTR() bool { return s.enhanced && s.peer.PeerToPeer }

// reject returns the rejecting Reply. Its control word repeats the initiator's numbers.
func (s *setup) reject(private []byte) []byte {
	f := s.reply(private)
	f.Flags |= wire.FlagReject
	f.Control = wire.Control{IRD: s.peer.IRD, ORD: s.peer.ORD}
	return wire.AppendFrame(nil, &f)
}

// judgeReply judges a Reply, or the error in it. A protocol error is answered with a Terminate, any
// other with a FIN. private is the peer's; a Terminate, too, uses the CRC of t.
func (s *setup) judgeReply(f *wire.Frame, err error) (t terms, private []byte, e *Error) {
	e = &Error{Op: "reply", Errno: unix.EINVAL}
	rev2 := s.revision >= 2
	switch {
	case err != nil:
		e.Text = err.Error()
		return terms{crc: s.crc}, nil, e.asMPA(4)
	case !f.Reply:
		e.Text = "a Request where a Reply belongs"
		return terms{crc: s.crc}, nil, e.asMPA(4)
	case f.Flags&wire.FlagReject != 0:
		e.Rejected, e.Errno, e.Text = true, unix.ECONNRESET, "rejected by the peer"
		return t, f.Private, e
	case rev2 && !f.Enhanced():
		e.Errno, e.Text = unix.ECONNRESET, fmt.Sprintf("revision %d without a control word to our revision 2 Request", f.Revision)
		return t, f.Private, e
	case !rev2 && f.Revision >= 2:
		e.Text = fmt.Sprintf("revision %d to our revision %d Request", f.Revision, s.revision)
		return t, nil, e
	case f.Flags&wire.FlagMarkers != 0:
		e.Errno, e.Text = unix.ECONNREFUSED, "the responder demands markers"
		return t, nil, e
	}
	t = terms{ird: s.ird, ord: s.ord, crc: s.crc || f.Flags&wire.FlagCRC != 0}
	if !f.Enhanced() {
		t.ird = max(t.ird, UnagreedIRD)
		return t, f.Private, nil
	}
	e = s.agreeControl(&t, f.Control, e)
	return t, f.Private, e
}

// agreeControl agrees on the control word of an accepting Reply: the limits, and the
// ready-to-receive message that it demands. A responder that announces more Reads than this side
// has offered to serve gets them, up to UnagreedIRD, as from soft-iWARP and cxgb4
// (relaxed_ird_negotiation). Otherwise it returns e.
func (s *setup) agreeControl(t *terms, w wire.Control, e *Error) *Error {
	if w.ORD != wire.NotNegotiated {
		if most := max(t.ird, UnagreedIRD); w.ORD > most {
			e.Text = fmt.Sprintf("the responder wants %d Reads outstanding, more than our %d", w.ORD, most)
			return e.asMPA(6)
		}
		t.ird = max(t.ird, w.ORD)
	}
	t.ord = min(t.ord, w.IRD)
	switch {
	case !s.peerToPeer || !w.PeerToPeer:
	case w.RTRWrite:
		t.rtr = ctlWrite
	case w.RTRRead:
		t.rtr = ctlRead
	default:
		e.Text = "the responder chose none of the ready-to-receive messages we offered"
		return e.asMPA(7)
	}
	return nil
}

// asMPA makes e a protocol error that an MPA Terminate reports.
func (e *Error) asMPA(code uint8) *Error {
	e.Protocol, e.Sent, e.Layer, e.Type, e.Code = true, true, wire.LayerMPA, 0, code
	return e
}

// BeginSetup begins the set-up: an initiator queues its Request, a responder waits for one.
func (c *Conn) BeginSetup(now time.Time) {
	if c.state != stIdle {
		return
	}
	c.phaseAt = now.Add(c.setup.timeout)
	if !c.setup.initiator {
		c.state = stRequest
		return
	}
	c.state = stReply
	c.out.raw = c.setup.request()
}

// inputFrame takes bytes of the peer's MPA frame and returns those that follow the frame.
func (c *Conn) inputFrame(now time.Time, b []byte) []byte {
	b, f, done, err := c.setup.consume(b)
	switch {
	case !done:
	case c.setup.initiator:
		c.handleReply(now, &f, err)
	case len(b) > 0 && err == nil:
		c.closeSetup("request", "bytes behind the Request, before its Reply")
		return nil
	default:
		c.handleRequest(now, &f, err)
	}
	return b
}

// handleRequest hands a Request to the owner.
func (c *Conn) handleRequest(now time.Time, f *wire.Frame, err error) {
	r, reject, e := c.setup.judgeRequest(f, err)
	switch {
	case e == nil:
		c.state, c.phaseAt = stAnswer, time.Time{}
		c.up.Request(r)
	case reject:
		c.startLinger(now, c.setup.reject(nil))
		c.closeProtocol(e)
	default:
		c.closeSocket()
		c.closeProtocol(e)
	}
}

// Accept answers the Request with a Reply that has private data (at most MaxPrivateData bytes) and
// this side's limits. ord is lowered to the number of Reads that the initiator serves. If the
// Request states no limits, ird is at least UnagreedIRD. Accept fails with ECONNRESET if the
// initiator is gone, and with EINVAL if there is no Request to answer.
func (c *Conn) Accept(now time.Time, private []byte, ird, ord uint16) error {
	if err := c.setup.checkAnswer(c.state, private, ird, ord); err != nil {
		return err
	}
	reply, t := c.setup.accept(private, ird, ord)
	c.applyTerms(t)
	c.out.raw, c.pacing.held = reply, true
	c.state, c.phaseAt = stAccepted, now.Add(c.setup.timeout)
	return nil
}

// Reject answers the Request with a rejecting Reply and ends the connection. It calls Closed(nil)
// before it returns. Errors as for Accept.
func (c *Conn) Reject(now time.Time, private []byte) error {
	if err := c.setup.checkAnswer(c.state, private, 0, 0); err != nil {
		return err
	}
	c.startLinger(now, c.setup.reject(private))
	c.closeProtocol(nil)
	return nil
}

// handleReply establishes an initiator's connection, or ends it.
func (c *Conn) handleReply(now time.Time, f *wire.Frame, err error) {
	t, private, e := c.setup.judgeReply(f, err)
	c.applyTerms(t)
	switch {
	case e == nil:
		c.reportEstablished(private)
	case e.Protocol:
		// behind the rest of the Request, in case the peer has answered before it had all of it
		c.startLinger(now, c.out.terminate(&wire.Terminate{Layer: e.Layer, Type: e.Type, Code: e.Code}))
		c.reportRejected(nil, e)
	default:
		c.closeSocket()
		c.reportRejected(private, e)
	}
}

// applyTerms applies what the two sides have agreed on.
func (c *Conn) applyTerms(t terms) {
	c.in.crc, c.out.crc = t.crc, t.crc
	c.stream.served.ird = t.ird
	c.stream.sends.reads.ord, c.stream.sends.reads.rtr = t.ord, t.rtr&ctlRead != 0
	c.pacing.due |= t.rtr
}

// reportEstablished makes the connection usable and reports it.
func (c *Conn) reportEstablished(private []byte) {
	c.state, c.phaseAt = stOpen, time.Time{}
	c.up.Established(private, c.stream.served.ird, c.stream.sends.reads.ord)
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
