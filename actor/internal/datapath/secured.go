package datapath

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// On a secured connection every Send is a record (docs/security-wire.md). A message is sealed when
// the device is about to get it, into the memory that the device sends from, which takes the place
// of a copy. So a message that waits, is renewed or is returned is never sealed.
//
// Each record has a number, which both sides count. So a record that was sealed has to leave, and
// before every other one. If the device does not take it, it is owed, and counts as posted.

// security is the state of a secured connection.
type security struct {
	c         *Conn           // through which it sends
	handshake Handshake       // nil: the first messages have come
	channel   *secure.Channel // nil: the handshake is not done
	awaited   wire.Type       // the peer's first message, if it has to come; 0: nothing may
	flows     bool            // the first messages have come and gone
	last      wire.Type       // of refusal
	refusal   []byte          // the reject that takes the goodbye's place; nil: there is none
	tls       bool            // TLS mode: frames come first
	frames    [][]byte        // frames that the device has not taken
	heard     bool            // a frame has come
	alert     []byte          // the alert that takes the goodbye's place; nil: there is none
	inline    []byte          // of a small record, which the device copies
	sealed    int             // records under the present key
	rekeyed   int             // times
	renewed   int             // key updates of the peer
	owed      owed
}

// owed is a record that the device has not taken.
type owed struct {
	due     bool
	posting Posting
	b       []byte // in the posting's chunk, or in security.inline
}

// Secure begins the records of the side that has connected: its handshake is done. It sends body in
// its request, and waits for the peer's accept or reject.
func (s *security) Secure(ch *secure.Channel, body []byte) error {
	s.channel, s.awaited = ch, wire.TypeAccept
	if err := s.letIn(); err != nil {
		return err
	}
	if s.c.Device.attr.OverlooksFirst {
		s.c.l.el.AfterFunc(overlookTime, s.probeRequest)
	}
	return s.sendFirst(wire.TypeRequest, body)
}

// probeRequest sends a probe if the peer's device may have overlooked the request (overlooked.go).
// The peer answers it behind its accept.
func (s *security) probeRequest() {
	if !s.c.Over() && s.awaited != 0 {
		s.c.Beat.sendProbe(s.c)
	}
}

// Accept sends the accept, with body in it. Messages flow from Establish on.
func (s *security) Accept(body []byte) error {
	if err := s.letIn(); err != nil {
		return err
	}
	if err := s.sendFirst(wire.TypeAccept, body); err != nil {
		return err
	}
	s.flows = true
	return nil
}

// Reject makes the goodbye a reject that contains body.
func (s *security) Reject(body []byte) {
	s.last, s.refusal = wire.TypeReject, append([]byte{}, body...)
}

// Refuse makes the goodbye a refusal: this side's runtime rejects the peer, because of why.
func (s *security) Refuse(why wire.Refusal) {
	s.last, s.refusal = wire.TypeRefusal, []byte{byte(why)}
}

// Suite returns the cipher suite of the messages; 0: none.
func (s *security) Suite() secure.Suite {
	if s == nil || s.channel == nil {
		return 0
	}
	return s.channel.Suite
}

func (s *security) sendFirst(t wire.Type, body []byte) error {
	return s.c.Device.postMessage(s.c, nil, t.Put(body), false)
}

// isMute reports whether the peer would not understand a last message.
func (s *security) isMute() bool {
	return s != nil && s.alert == nil && (s.channel == nil || !s.flows && s.refusal == nil)
}

// openRecord opens a record or handles a frame. Not ok: it was handled, or was not valid.
func (s *security) openRecord(sealed []byte) (b []byte, ok bool) {
	if s.awaitsFrames() {
		s.heard = true
		s.handshake.Frame(sealed)
		return nil, false
	}
	var err error
	if s.channel == nil {
		if b, s.channel, err = s.handshake.Prove(sealed); err == nil {
			s.awaited = wire.TypeRequest
		}
	} else if err = s.peerAlert(sealed); err == nil {
		b, err = s.channel.Open.Open(sealed[:0], sealed)
		err = asViolation(err)
	}
	switch {
	case err == nil && s.flows:
		return b, true
	case err == nil && s.awaited == 0:
		err = s.takeEarly(b)
	case err == nil:
		err = s.takeFirst(b)
	}
	if err != nil {
		s.c.identifier.BreakOff(err)
	}
	return nil, false
}

// peerAlert returns the peer's reason if b refuses this side's handshake in TLS mode. A client is
// done before the server has seen its certificate.
func (s *security) peerAlert(b []byte) error {
	if !s.tls || s.awaited != wire.TypeAccept {
		return nil
	}
	return secure.PeerAlert(b)
}

// takeEarly handles a message of the peer before this side has accepted: a probe.
func (s *security) takeEarly(b []byte) error {
	h, err := wire.ParseSecuredHeader(b)
	switch {
	case err != nil:
		return err
	case h.Type != wire.TypeProbe:
		return &wire.ProtocolError{What: "a message before this side has accepted"}
	}
	return s.c.Session.Take(h)
}

// takeFirst takes the peer's first message. Nothing else may come before both sides have sent
// theirs.
func (s *security) takeFirst(b []byte) error {
	t, body, err := wire.ParseFirst(b)
	switch {
	case err != nil:
		return err
	case t != s.awaited && (t != wire.TypeReject && t != wire.TypeRefusal || s.awaited != wire.TypeAccept):
		return &wire.ProtocolError{What: "a first message that is not the one that has to come"}
	}
	s.awaited, s.flows = 0, t == wire.TypeAccept
	h := s.handshake
	s.handshake = nil
	h.First(t, body)
	return nil
}

// parseHeader takes the header off a message.
func (s *security) parseHeader(b []byte) (wire.Header, error) {
	if s == nil {
		return wire.ParseHeader(b)
	}
	h, err := wire.ParseSecuredHeader(b)
	if err == nil && h.Type == wire.TypeKeyUpdate {
		s.renewed++
		err = asViolation(s.channel.Open.Update())
	}
	return h, err
}

// asViolation returns err as a violation by the peer, if it exceeded the limits of a key.
func asViolation(err error) error {
	if limit, ok := errors.AsType[*secure.LimitError](err); ok {
		return &wire.ProtocolError{What: limit.What}
	}
	return err
}

// sealAndPost seals a message and posts it. Without an error it is posted or owed.
func (s *security) sealAndPost(m *Outgoing, b []byte, quiet bool) error {
	d := s.c.Device
	if s.owed.due || s.channel == nil {
		return errNoRoom
	}
	o := owed{posting: Posting{Send: m}}
	n := len(b) + secure.Overhead
	if n > d.attr.MaxInline {
		chunk, err := s.c.Out.sendChunk(m, n)
		if err != nil {
			return err
		}
		o.posting.chunk, o.b = chunk, chunk.Bytes()[:0]
	} else {
		o.b = s.inline[:0]
	}
	var err error
	if o.b, err = s.channel.Seal.Seal(o.b, b); err != nil { // nothing more can be sealed
		if o.posting.chunk != nil {
			o.posting.chunk.Free()
		}
		s.c.identifier.BreakOff(err)
		return err
	}
	s.sealed++
	if o.posting.chunk == nil {
		s.inline = o.b
	}
	if len(s.frames) > 0 { // it goes behind them
		s.owed = o
		s.owed.due = true
		return nil
	}
	if err := d.postRecord(s.c, &o, quiet); err != nil {
		s.owed = o
		s.owed.due = true
		s.retryOwed(err)
	}
	return nil
}

// Owes reports whether frames or a record have to leave before anything else.
func (s *security) Owes() bool { return s != nil && (s.owed.due || len(s.frames) > 0) }

// payOwed posts the owed frames and record. False: some are still owed.
func (s *security) payOwed() bool {
	if !s.Owes() || s.c.Over() && !s.c.end.awaitsGoodbye() {
		return true // it is no longer needed
	}
	if !s.payFrames() {
		return false
	}
	if !s.owed.due {
		return true
	}
	if !s.c.Out.Flight.hasRoom() {
		return false // a completion makes room
	}
	if err := s.c.Device.postRecord(s.c, &s.owed, false); err != nil {
		s.retryOwed(err)
		return false
	}
	s.owed = owed{}
	return true
}

// retryOwed schedules another attempt for a record that the device did not take, unless it never
// takes one.
func (s *security) retryOwed(err error) {
	if errors.Is(err, unix.ENOMEM) {
		s.c.Out.pumpLater()
		return
	}
	s.c.queuePairRefused(verbs.Send, err)
}

// failOwed answers for the owed record, which will not leave, and frees its memory.
func (s *security) failOwed() {
	if s == nil {
		return
	}
	o := s.owed
	s.owed, s.frames = owed{}, nil
	if o.posting.chunk != nil {
		o.posting.chunk.Free()
	}
	if o.posting.Send != nil {
		s.c.Out.failSends(o.posting.Send, Flushed())
	}
	if s.channel != nil {
		s.channel.Forget()
	}
}

// postRecord posts a sealed record.
func (d *Device) postRecord(c *Conn, o *owed, quiet bool) error {
	d.prepareSend(quiet)
	if o.posting.chunk == nil {
		d.wr.Inline = o.b
	} else {
		d.sgl[0] = o.posting.chunk.SGE
		d.sgl[0].Length = uint32(len(o.b))
		d.wr.SGL = d.sgl[:]
	}
	return d.postPrepared(c, o.posting)
}

// updateKey changes this side's key when that is due. False: there is no room for the message about
// it.
func (s *security) updateKey() bool {
	seal := s.channel.Seal
	if !seal.UpdateDue() && (s.c.terms.Rekey == 0 || s.sealed < s.c.terms.Rekey) {
		return true
	}
	if !s.c.Out.sendControl(wire.TypeKeyUpdate, 0) {
		return false
	}
	s.sealed = 0
	s.rekeyed++
	if err := seal.Update(); err != nil {
		s.c.identifier.BreakOff(err)
		return false
	}
	return true
}

// KeyUpdates returns the number of key changes of each side.
func (s *security) KeyUpdates() (own, peers uint64) {
	if s == nil {
		return 0, 0
	}
	return uint64(s.rekeyed), uint64(s.renewed)
}
