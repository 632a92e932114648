package actor

// begin says that m's actor has its loop, for the watchdog to name it and not the device that has
// brought the message; where its mailbox is run by the loop itself it is named already. On the
// loop; off the loops nothing is named.
func (m *mailbox) begin(named bool) {
	l := m.loop()
	if l == nil {
		return
	}
	m.outer, l.mail.inner = l.mail.inner, m
	if !named {
		l.el.Blame(&m.self)
	}
}

// end says that it has it no more. Another actor may have, in the middle of whose message this one
// has got its own. A device that goes on is not named again: that would cost as much for each
// message.
func (m *mailbox) end() {
	l := m.loop()
	if l == nil {
		return
	}
	if m.outer != nil {
		l.el.Blame(&m.outer.self)
	}
	l.mail.inner, m.outer = m.outer, nil
}
