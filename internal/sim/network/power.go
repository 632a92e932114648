package network

// PowerOff stops the machine immediately. Its peers are not notified: their segments get no answer.
// All its processes end.
func (m *Machine) PowerOff() {
	m.off = true
	for _, p := range m.procs {
		for _, s := range p.files {
			if s != nil {
				s.dropOnPowerOff()
			}
		}
		p.closeAll()
	}
	for _, list := range m.ports {
		for _, s := range list {
			s.dropOnPowerOff()
		}
	}
	for _, s := range m.conns {
		s.dropOnPowerOff()
	}
	m.procs = nil
	m.removeSockets()
}

// PowerOn starts the machine again, with its addresses and without processes. It answers segments
// of its old connections with resets.
func (m *Machine) PowerOn() { m.off = false }

// dropOnPowerOff ends a socket of a machine that was switched off.
func (s *sock) dropOnPowerOff() {
	s.flow.dropAll()
	s.m.net.agenda.stop(&s.timer.event)
	s.state, s.claims, s.closed = stateClosed, false, true
}
