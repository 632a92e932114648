package wire

// A Write with an immediate uses up a receive of the peer's, so it takes a credit, and has its
// place among the messages. It has no header, so it states nothing.

// SentImmediate notes that the device has taken one.
func (s *Session) SentImmediate() { s.sent++ }

// TakeImmediate accounts for one of the peer's. An error is a *ProtocolError.
func (s *Session) TakeImmediate() error {
	switch {
	case s.goodbye:
		return newProtocolError("a Write with an immediate behind the peer's goodbye")
	case !s.Agreed():
		return newProtocolError("a Write with an immediate before the peer's hello")
	}
	return s.takeCredits(1)
}
