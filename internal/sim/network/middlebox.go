package network

// HangUp puts a middlebox before the machine, or removes it. For each pair of addresses and ports
// it accepts the first connection, and closes it when bytes arrive, as a proxy does whose server is
// not there yet. The next connection between them reaches the machine, even if the middlebox was
// removed and added again.
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

// discardBytes discards a connection's bytes at the middlebox.
func (s *sock) discardBytes(n int) {
	s.in.before += uint64(n)
	s.queueFIN()
}
