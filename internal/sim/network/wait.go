package network

import "time"

const (
	waitFor  = time.Minute // how long TIME_WAIT lasts, and FIN_WAIT_2 of a closed socket
	mostWait = 4096        // of a machine
)

// timeWait is a connection that is over but for what may still be on its way. It needs no socket.
type timeWait struct {
	s    *sock
	half bool // it is in FIN_WAIT_2: the peer's FIN has not come
	over time.Time
	gone bool
}

// wait leaves the connection to a timeWait.
func (s *sock) wait(half bool) {
	m, t := s.m, s.tuple()
	w := &timeWait{s: s, half: half, over: m.now().Add(waitFor)}
	s.done()
	if len(m.waits) >= mostWait {
		return
	}
	m.expire()
	m.waits[t] = w
	m.order = append(m.order, w)
}

// expire forgets the timeWaits whose time is over.
func (m *Machine) expire() {
	now := m.now()
	i := 0
	for i < len(m.order) && (m.order[i].gone || !m.order[i].over.After(now)) {
		m.end(m.order[i])
		i++
	}
	m.order = m.order[i:]
}

func (m *Machine) end(w *timeWait) {
	if !w.gone {
		w.gone = true
		delete(m.waits, w.s.tuple())
	}
}

// waiting is the timeWait of a connection, or nil.
func (m *Machine) waiting(t tuple) *timeWait {
	m.expire()
	return m.waits[t]
}

// renew starts a timeWait's time again, as a full one.
func (m *Machine) renew(w *timeWait) {
	t := w.s.tuple()
	m.end(w)
	n := &timeWait{s: w.s, over: m.now().Add(waitFor)}
	m.waits[t] = n
	m.order = append(m.order, n)
}
