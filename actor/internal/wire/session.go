package wire

// Session is the protocol state of the two sides of a connection: the credits of both, their
// offers, probes and goodbyes. All counts are totals since the beginning, of messages modulo 2^32
// and of offers modulo 2^16. So nothing is lost if a later update takes the place of an earlier
// one, and the counts also serve as acknowledgements. Make it with NewSession.
type Session struct {
	send     uint32 // the peer's window: how many may be unconsumed
	sent     uint32 // handed to the device
	acked    uint32 // consumed, as stated by the peer
	receive  uint32 // our window
	received uint32
	consumed uint32 // counted by the owner
	stated   uint32 // the last consumed that the peer knows
	beats    uint32 // probes, answers and credit updates of the peer's

	delivered uint64 // acked, not modulo

	offered    uint16 // handed to the device
	pulled     uint16 // read, as stated by the peer
	heard      uint16 // offers of the peer's
	read       uint16 // by this side, completely
	readStated uint16 // the last read that the peer knows

	probing bool  // our probe is not answered
	owing   bool  // the peer's
	version uint8 // 0: not agreed on

	reading bool // Reads are under way

	ackNow bool // the peer wants to know as soon as everything is consumed
	ask    bool // we want to know
	asked  bool // we are about to close, and have sent all we had
	final  bool // and the peer knows of everything

	goodbye bool // the peer's

	resizes resizes
}

// ControlReceives is how many receives a connection needs beyond the credits it grants: for the
// credit updates that its peer may have under way, its goodbye, a probe, an answer and a change of
// its receives.
const ControlReceives = updatesMax + 4

// updatesMax is how many credit updates may be under way.
const updatesMax = 4 + MaxOffers

// NewSession is the session of a side that grants its peer so many credits.
func NewSession(credits int) Session { return Session{receive: uint32(credits)} }

// Agree takes the peer's hello.
func (s *Session) Agree(h Hello) { s.version, s.send = h.Version, uint32(h.Credits) }

// Agreed reports whether the peer's hello is known. Both sides may then send every type of message
// of the connection's version.
func (s *Session) Agreed() bool { return s.version != 0 }

// Granted is how many credits this side has granted.
func (s *Session) Granted() int { return int(s.receive) }

// Window is how many messages, data or offers, may be sent now.
func (s *Session) Window() uint32 { return s.send - (s.sent - s.acked) }

// Unread is how many of our offers the peer has not reported as read.
func (s *Session) Unread() int { return int(s.offered - s.pulled) }

// Delivered is how many messages the peer has consumed.
func (s *Session) Delivered() uint64 { return s.delivered }

// Goodbye reports whether the peer has sent a goodbye.
func (s *Session) Goodbye() bool { return s.goodbye }

// Probing reports whether a local probe is unanswered.
func (s *Session) Probing() bool { return s.probing }

// Header makes the header of the next message; it carries the counts of consumed and read
// messages.
func (s *Session) Header(typ Type, flags uint8) Header {
	return Header{typ, flags | s.resizes.headerFlag(), s.read, s.consumed}
}

// Take accounts for a message of the peer's that is no bundle. An error is a *ProtocolError.
func (s *Session) Take(h Header) error {
	if err := s.takeHeader(h); err != nil {
		return err
	}
	if h.Type.isControl() {
		return s.takeControl(h.Type)
	}
	if err := s.takeCredits(1); err != nil {
		return err
	}
	if h.Type == TypeOffer {
		if s.heard-s.readStated >= MaxOffers {
			return newProtocolError("the peer has made more than %d offers that we have not said to have read", MaxOffers)
		}
		s.heard++
	}
	return nil
}

// takeHeader accounts for the counts and flags of a header.
func (s *Session) takeHeader(h Header) error {
	if err := s.checkAllowed(h); err != nil {
		return err
	}
	news := h.Consumed - s.acked
	if news > s.sent-s.acked {
		return newProtocolError("the peer says it has consumed %d messages of %d", h.Consumed, s.sent)
	}
	if h.Pulled-s.pulled > s.offered-s.pulled {
		return newProtocolError("the peer says it has read %d offers of %d", h.Pulled, s.offered)
	}
	if err := s.resizes.takeFlag(h.Flags&Resized != 0); err != nil {
		return err
	}
	s.acked = h.Consumed
	s.delivered += uint64(news)
	s.pulled = h.Pulled
	if h.Flags&AckNow != 0 {
		s.ackNow = true
	}
	return nil
}

// takeCredits accounts for n credits that the peer has used.
func (s *Session) takeCredits(n uint32) error {
	if n > s.receive-(s.received-s.consumed) {
		return newProtocolError("the peer has sent more than the %d messages it has credits for", s.receive)
	}
	s.received += n
	return nil
}

// checkAllowed returns an error if a message of that kind is not allowed at this time.
func (s *Session) checkAllowed(h Header) error {
	switch {
	case s.goodbye:
		return newProtocolError("a message behind the peer's goodbye")
	case h.Type == TypeReceives && !s.Agreed():
		return newProtocolError("a change of receives before the peer's hello")
	case h.Type == TypeBundle && s.Agreed() && !s.Bundles(): // it may overtake the peer's hello
		return newProtocolError("a bundle of a peer of version %d", s.version)
	}
	return nil
}

func (s *Session) takeControl(typ Type) error {
	switch typ {
	case TypeGoodbye:
		s.goodbye = true
		return nil
	case TypeProbe:
		if s.owing {
			return newProtocolError("a probe before the last was answered")
		}
		s.owing = true
	case TypeAnswer:
		if !s.probing {
			return newProtocolError("an answer to no probe")
		}
		s.probing = false
	case TypeReceives:
		return s.resizes.takeResize()
	}
	s.beats++ // a credit update is one also without news: it may stand for a probe that waits
	return nil
}

// Consume notes that the owner has finished with a message.
func (s *Session) Consume() { s.consumed++ }

// Reading notes whether Reads of the peer's offers are under way.
func (s *Session) Reading(under bool) { s.reading = under }

// Pull notes that an offer of the peer's was read completely.
func (s *Session) Pull() { s.read++ }

// Finish notes the end of local messages: from now on the peer is asked to state what it has
// consumed.
func (s *Session) Finish() {
	if !s.asked {
		s.asked, s.ask = true, s.sent != s.acked
	}
}

// Next is the message without a credit that should be sent now: the answer to a probe, then a
// credit update. Not ok: none.
func (s *Session) Next() (typ Type, flags uint8, ok bool) {
	switch {
	case s.owing:
		return TypeAnswer, 0, true
	case s.ask:
		return TypeCredit, AckNow, true
	case s.updateDue():
		return TypeCredit, 0, true
	}
	return 0, 0, false
}

// updateDue reports whether a credit update should be sent. It never allows more updates in flight
// than docs/wire.md does, because on some devices each one must find a receive.
func (s *Session) updateDue() bool {
	switch unstated := s.consumed - s.stated; {
	case s.ackNow && s.consumed == s.received:
		return true
	case s.isFinishing() && !s.final:
		return unstated > 0
	case s.read != s.readStated && (!s.reading || s.read-s.readStated >= MaxOffers/2):
		return true
	default:
		return unstated > 0 && unstated >= (s.receive+1)/2
	}
}

// Stands reports whether the peer has sent a message for every credit that it knows of, while
// others are free. If the owner retains more than half of the window, no update becomes due then,
// and one has to be sent without. The peer has taken in every earlier update that had news of
// credits, so at most two of them are under way, as ever.
func (s *Session) Stands() bool { return s.consumed != s.stated && s.received-s.stated == s.receive }

// Sent notes that the device has taken a message with the header of that type and flags.
func (s *Session) Sent(typ Type, flags uint8) {
	switch typ {
	case TypeOffer:
		s.offered++
		s.sent++
	case TypeData:
		s.sent++
	case TypeProbe:
		s.probing = true
	case TypeAnswer:
		s.owing = false
	}
	s.stated, s.readStated = s.consumed, s.read
	s.resizes.headerSent(typ)
	s.final = s.final || s.isFinishing()
	if flags&AckNow != 0 {
		s.ask = false
	}
	if s.consumed == s.received {
		s.ackNow = false
	}
}

// Beats counts the probes, answers and credit updates of the peer's.
func (s *Session) Beats() uint32 { return s.beats }

// Signs counts what shows that the peer is there.
func (s *Session) Signs() uint64 {
	return uint64(s.received) + uint64(s.acked) + uint64(s.pulled) + uint64(s.Beats())
}

// isFinishing reports whether we are about to close, and nothing is missing but our own last
// statement.
func (s *Session) isFinishing() bool { return s.asked && s.sent == s.acked }

// Settled reports whether an orderly close may disconnect: the peer has consumed all messages of
// this side, and knows what this side had consumed when nothing else was left to wait for.
func (s *Session) Settled() bool {
	return s.sent == s.acked && !s.ask && (s.consumed == s.stated || s.final)
}

// Unacked is how many of our messages the peer has not reported as consumed.
func (s *Session) Unacked() int { return int(s.sent - s.acked) }

// Unfreed is how many messages of the peer's the owner has not consumed.
func (s *Session) Unfreed() int { return int(s.received - s.consumed) }
