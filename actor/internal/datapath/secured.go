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
func (c *Conn) Secure(ch *secure.Channel, body []byte) error {
	c.sec.channel, c.sec.awaited = ch, wire.TypeAccept
	if err := c.letIn(); err != nil {
		return err
	}
	if c.Device.attr.OverlooksFirst {
		c.l.el.AfterFunc(overlookTime, c.probeRequest)
	}
	return c.sendFirst(wire.TypeRequest, body)
}

// probeRequest sends a probe if the peer's device may have overlooked the request (overlooked.go).
// The peer answers it behind its accept.
func (c *Conn) probeRequest() {
	if !c.Over() && c.sec.awaited != 0 {
		c.Beat.sendProbe(c)
	}
}

// Accept sends the accept, with body in it. Messages flow from Establish on.
func (c *Conn) Accept(body []byte) error {
	if err := c.letIn(); err != nil {
		return err
	}
	if err := c.sendFirst(wire.TypeAccept, body); err != nil {
		return err
	}
	c.sec.flows = true
	return nil
}

// Reject makes the goodbye a reject that contains body.
func (c *Conn) Reject(body []byte) {
	c.sec.last, c.sec.refusal = wire.TypeReject, append([]byte{}, body...)
}

// Refuse makes the goodbye a refusal: this side's runtime rejects the peer, because of why.
func (c *Conn) Refuse(why wire.Refusal) {
	c.sec.last, c.sec.refusal = wire.TypeRefusal, []byte{byte(why)}
}

// Suite returns the cipher suite of the messages; 0: none.
func (c *Conn) Suite() secure.Suite {
	if c.sec == nil || c.sec.channel == nil {
		return 0
	}
	return c.sec.channel.Suite
}

func (c *Conn) sendFirst(t wire.Type, body []byte) error {
	return c.Device.post(c, nil, t.Put(body), false)
}

// goodbyePost posts the last message.
func (c *Conn) goodbyePost() error {
	if c.sec != nil && c.sec.alert != nil {
		return c.postFrame(c.sec.alert)
	}
	if c.sec != nil && c.sec.refusal != nil {
		return c.sendFirst(c.sec.last, c.sec.refusal)
	}
	return c.control(wire.TypeGoodbye, 0)
}

// mute reports whether the peer would not understand a last message.
func (s *security) mute() bool {
	return s != nil && s.alert == nil && (s.channel == nil || !s.flows && s.refusal == nil)
}

// open opens a record or handles a frame. Not ok: it was handled, or was not valid.
func (c *Conn) open(sealed []byte) (b []byte, ok bool) {
	s := c.sec
	if s.framing() {
		s.heard = true
		s.handshake.Frame(sealed)
		return nil, false
	}
	var err error
	if s.channel == nil {
		if b, s.channel, err = s.handshake.Prove(sealed); err == nil {
			s.awaited = wire.TypeRequest
		}
	} else if err = s.refused(sealed); err == nil {
		b, err = s.channel.Open.Open(sealed[:0], sealed)
		err = exceeded(err)
	}
	switch {
	case err == nil && s.flows:
		return b, true
	case err == nil && s.awaited == 0:
		err = c.takeEarly(b)
	case err == nil:
		err = c.takeFirst(b)
	}
	if err != nil {
		c.up.BreakOff(err)
	}
	return nil, false
}

// refused returns the peer's reason if b refuses this side's handshake in TLS mode. A client is
// done before the server has seen its certificate.
func (s *security) refused(b []byte) error {
	if !s.tls || s.awaited != wire.TypeAccept {
		return nil
	}
	return secure.PeerAlert(b)
}

// takeEarly handles a message of the peer before this side has accepted: a probe.
func (c *Conn) takeEarly(b []byte) error {
	h, err := wire.ParseSecuredHeader(b)
	switch {
	case err != nil:
		return err
	case h.Type != wire.TypeProbe:
		return &wire.ProtocolError{What: "a message before this side has accepted"}
	}
	return c.Session.Take(h)
}

// takeFirst takes the peer's first message. Nothing else may come before both sides have sent
// theirs.
func (c *Conn) takeFirst(b []byte) error {
	s := c.sec
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

// parse takes the header off a message.
func (c *Conn) parse(b []byte) (wire.Header, error) {
	if c.sec == nil {
		return wire.ParseHeader(b)
	}
	h, err := wire.ParseSecuredHeader(b)
	if err == nil && h.Type == wire.TypeKeyUpdate {
		c.sec.renewed++
		err = exceeded(c.sec.channel.Open.Update())
	}
	return h, err
}

// exceeded gives err as a violation by the peer, if it has used a key for too much, or for too
// little to change it.
func exceeded(err error) error {
	if limit, ok := errors.AsType[*secure.LimitError](err); ok {
		return &wire.ProtocolError{What: limit.What}
	}
	return err
}

// record seals a message and posts it. Without an error it is posted or owed.
func (c *Conn) record(s *Outgoing, b []byte, quiet bool) error {
	sec, d := c.sec, c.Device
	if sec.owed.due || sec.channel == nil {
		return errNoRoom
	}
	o := owed{posting: Posting{Send: s}}
	n := len(b) + secure.Overhead
	if n > d.attr.MaxInline {
		chunk, err := c.sendChunk(s, n)
		if err != nil {
			return err
		}
		o.posting.chunk, o.b = chunk, chunk.Bytes()[:0]
	} else {
		o.b = sec.inline[:0]
	}
	var err error
	if o.b, err = sec.channel.Seal.Seal(o.b, b); err != nil { // nothing more can be sealed
		if o.posting.chunk != nil {
			o.posting.chunk.Free()
		}
		c.up.BreakOff(err)
		return err
	}
	sec.sealed++
	if o.posting.chunk == nil {
		sec.inline = o.b
	}
	if len(sec.frames) > 0 { // it goes behind them
		sec.owed = o
		sec.owed.due = true
		return nil
	}
	if err := d.postRecord(c, &o, quiet); err != nil {
		sec.owed = o
		sec.owed.due = true
		c.unpaid(err)
	}
	return nil
}

// owes reports whether frames or a record have to leave before anything else.
func (c *Conn) owes() bool { return c.sec != nil && (c.sec.owed.due || len(c.sec.frames) > 0) }

// pay posts the owed frames and record. False: some are still owed.
func (c *Conn) pay() bool {
	if !c.owes() || c.Over() && !c.end.awaitsGoodbye() {
		return true // it is no longer needed
	}
	if !c.payFrames() {
		return false
	}
	if !c.sec.owed.due {
		return true
	}
	if !c.Flight.hasRoom() {
		return false // a completion makes room
	}
	if err := c.Device.postRecord(c, &c.sec.owed, false); err != nil {
		c.unpaid(err)
		return false
	}
	c.sec.owed = owed{}
	return true
}

// unpaid schedules another attempt for a record that the device did not take, unless it never takes
// one.
func (c *Conn) unpaid(err error) {
	if errors.Is(err, unix.ENOMEM) {
		c.retry()
		return
	}
	c.queuePairRefused(verbs.Send, err)
}

// remit answers for the owed record, which will not leave, and frees its memory.
func (c *Conn) remit() {
	if c.sec == nil {
		return
	}
	o := c.sec.owed
	c.sec.owed, c.sec.frames = owed{}, nil
	if o.posting.chunk != nil {
		o.posting.chunk.Free()
	}
	if o.posting.Send != nil {
		c.failSends(o.posting.Send, Flushed())
	}
	if c.sec.channel != nil {
		c.sec.channel.Forget()
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
	return d.hand(c, o.posting)
}

// last returns the number of the last posting, or of the next if it is owed.
func (c *Conn) last() uint32 {
	if c.sec != nil && c.sec.owed.due {
		return c.Flight.next()
	}
	return c.Flight.next() - 1
}

// rekey changes this side's key when that is due. False: there is no room for the message about it.
func (c *Conn) rekey() bool {
	seal := c.sec.channel.Seal
	if !seal.UpdateDue() && (c.terms.Rekey == 0 || c.sec.sealed < c.terms.Rekey) {
		return true
	}
	if !c.say(wire.TypeKeyUpdate, 0) {
		return false
	}
	c.sec.sealed = 0
	c.sec.rekeyed++
	if err := seal.Update(); err != nil {
		c.up.BreakOff(err)
		return false
	}
	return true
}

// Owes reports whether the device has not taken a record that was sealed.
func (c *Conn) Owes() bool { return c.owes() }

// KeyUpdates returns the number of key changes of each side.
func (c *Conn) KeyUpdates() (own, peers uint64) {
	if c.sec == nil {
		return 0, 0
	}
	return uint64(c.sec.rekeyed), uint64(c.sec.renewed)
}
