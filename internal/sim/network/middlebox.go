package network

// HangUp puts a middlebox before the machine, or takes it away. For each pair of addresses and
// ports it accepts the first connection itself, and closes it when bytes have come, as a proxy does
// whose server is not there yet. The next connection between them reaches the machine, also behind
// a middlebox that was taken away and has come back.
func (m *Machine) HangUp(on bool) {
	m.hangs = on
	if m.known == nil {
		m.known = make(map[tuple]bool)
	}
}

// hangsUp reports whether a new connection is the middlebox's.
func (m *Machine) hangsUp(t tuple) bool {
	if !m.hangs || m.known[t] {
		return false
	}
	m.known[t] = true
	return true
}

// swallow is what the middlebox does with a connection's bytes.
func (s *sock) swallow(n int) {
	s.in.before += uint64(n)
	s.finish()
}
