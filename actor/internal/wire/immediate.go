package wire

// A Write with an immediate uses up a receive of the peer's, so it takes a credit, and has its
// place among the messages. It has no header, so it states nothing.

// Immediates reports whether the peer takes Writes with an immediate.
func (s *Session) Immediates() bool { return s.version >= 4 }

// SentImmediate notes that the device has taken one.
func (s *Session) SentImmediate() { s.sent++ }

// TakeImmediate accounts for one of the peer's. An error is a *ProtocolError.
func (s *Session) TakeImmediate() error {
	switch {
	case s.goodbye:
		return newProtocolError("a Write with an immediate behind the peer's goodbye")
	case !s.Immediates():
		return newProtocolError("a Write with an immediate of a peer of version %d", s.version)
	}
	return s.takeCredits(1)
}
