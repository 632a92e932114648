package network

import (
	"fmt"
	"strings"
)

// mostStray bounds a machine's answers in flight that belong to no socket.
const mostStray = 256

// happen delivers the oldest due segments to the other machine.
func (f *flow) happen() string {
	n := f.s.m.net
	now := n.cfg.Now()
	var line strings.Builder
	line.WriteString(arrow(f.s.local, f.s.remote))
	most := 0
	for most < f.segs.Len() && (most == 0 || !f.segs.At(most).due.After(now)) {
		most++
	}
	for range n.short(most) {
		if f.segs.Len() == 0 { // the answer has ended the socket
			break
		}
		seg := *f.segs.At(0)
		fmt.Fprintf(&line, " %v", seg.kind)
		if len(seg.data) > 0 {
			fmt.Fprintf(&line, " %d", len(seg.data))
		}
		dst := n.path(f.s.m, f.s.local.Addr(), f.s.destination())
		if dst == nil || !dst.receive(f, seg, &line) {
			f.retry(seg, now, &line)
			return line.String()
		}
	}
	if f.segs.Len() > 0 {
		n.agenda.set(&f.event, f.segs.At(0).due)
	}
	return line.String()
}

// receive takes the oldest segment of a flow. It returns false if the machine ignores it.
func (m *Machine) receive(f *flow, seg segment, line *strings.Builder) bool {
	from := f.s
	t := from.opposite()
	if to := m.conns[t]; to != nil {
		switch {
		case to.conn == from.conn:
			return to.input(f, seg, line)
		case seg.kind == kindSyn && to.middlebox:
			to.reset() // the SYN has overtaken the reset of the first connection
			return m.request(f, t, line)
		case seg.kind == kindSyn:
			to.challenge(line)
			return false
		}
	} else if seg.kind == kindSyn {
		return m.request(f, t, line)
	} else if w := m.waits.find(t, m.now()); w != nil && w.s.conn == from.conn {
		m.late(w, f, seg)
		return true
	}
	f.arrived()
	if seg.kind != kindReset {
		m.refuse(from, line)
	}
	return true
}

// input takes a segment of the connection.
func (s *sock) input(f *flow, seg segment, line *strings.Builder) bool {
	from := f.s
	s.heard, s.probes = s.m.now(), 0
	switch s.state {
	case stateSynReceived:
		if seg.kind == kindReset {
			f.arrived()
			s.reset()
			return true
		}
		if !s.established() {
			line.WriteString(" dropped, accept queue full")
			return false
		}
		s.acked(from)
	case stateSynSent:
		if seg.kind == kindSynAck {
			f.arrived()
			s.state, s.began, s.tries = stateEstablished, s.m.now(), 0
			s.mss = min(s.mss, from.mss)
			s.flow.push(segment{kind: kindOpen})
			s.acked(from)
			return true
		}
	}
	f.arrived()
	switch seg.kind {
	case kindReset:
		s.reset()
		return true
	case kindData:
		if s.closed || s.rdShut && (s.state == stateFinWait1 || s.state == stateFinWait2) {
			s.m.refuse(from, line)
			s.flow.drop()
			s.done()
			return true
		}
		s.in.next += uint64(len(seg.data))
		if s.middlebox {
			s.swallow(len(seg.data))
		} else {
			s.in.bytes.push(s.along(seg))
		}
	case kindFin:
		s.in.next++
		s.in.bytes.push(s.along(seg))
		s.finCame()
	}
	s.acked(from)
	if seg.kind == kindData || seg.kind == kindFin {
		s.acknowledge()
	}
	s.arm()
	return true
}

// acked is called when the peer has reported what it has received.
func (s *sock) acked(peer *sock) {
	peer.in.shown = peer.in.edge()
	if !s.live() {
		return
	}
	s.out.edge = max(s.out.edge, peer.in.shown)
	if next := peer.in.next; next > s.out.una {
		s.out.una = next
		s.began, s.tries = s.m.now(), 0
	}
	s.transmit()
	if s.out.finSent && s.out.una == s.out.next {
		s.finAcked()
	}
}

// challenge is called when a SYN arrives for a connection that exists: the peer has forgotten it.
// The acknowledgement that answers the SYN makes the peer reset the old connection.
func (s *sock) challenge(line *strings.Builder) {
	if n := s.m.net; n.path(s.m, s.local.Addr(), s.destination()) != nil {
		line.WriteString(" resets an old connection,")
		s.reset()
	}
}

// late takes a segment of a connection whose socket is gone on this side.
func (m *Machine) late(w *timeWait, f *flow, seg segment) {
	f.arrived()
	switch {
	case seg.kind == kindReset:
		m.waits.end(w)
	case seg.kind == kindFin && w.half:
		w.s.in.next++
		m.waits.renew(w, m.now())
		w.s.acknowledge()
	case seg.kind == kindData && w.half:
		m.waits.end(w)
		m.refuse(f.s, nil)
	}
}

// request takes a SYN.
func (m *Machine) request(f *flow, t tuple, line *strings.Builder) bool {
	from := f.s
	if w := m.waits.find(t, m.now()); w != nil {
		m.waits.end(w)
	}
	l := m.listener(t)
	if l == nil {
		f.arrived()
		m.refuse(from, line)
		return true
	}
	if len(l.accepts) > l.backlog || len(l.requests) > l.backlog {
		line.WriteString(" dropped, backlog full")
		return false
	}
	f.arrived()
	s := m.sock(l.domain, false)
	s.options = l.options
	s.out.size, s.in.size = l.child()
	s.local, s.remote = t.local, t.remote
	if from.realPeer.IsValid() {
		s.knownAs = from.tuple().remote
	}
	s.peer, from.peer = from, s
	s.conn, s.mss, s.state = from.conn, from.mss, stateSynReceived
	s.began, s.heard = m.now(), m.now()
	m.conns[s.tuple()] = s
	if s.middlebox = m.hangsUp(t); !s.middlebox {
		s.parent = l
		l.requests = append(l.requests, s)
		s.claim()
	}
	s.flow.push(segment{kind: kindSynAck})
	s.arm()
	return true
}

// refuse answers a segment with a reset.
func (m *Machine) refuse(from *sock, line *strings.Builder) {
	if m.stray >= mostStray {
		return
	}
	d, lost := m.net.travel(m, from.m)
	if lost {
		return
	}
	r := &stray{m: m, to: from, conn: from.conn}
	r.event = m.net.agenda.event(r)
	m.stray++
	m.net.agenda.set(&r.event, m.now().Add(d))
	if line != nil {
		line.WriteString(" refused")
	}
}

// stray is a reset that no socket sends.
type stray struct {
	event
	m    *Machine
	to   *sock
	conn uint64
}

func (r *stray) happen() string {
	n := r.m.net
	line := fmt.Sprintf("%v RST", arrow(r.to.remote, r.to.local))
	if p := r.to.peer; p != nil && p.conn == r.conn && p.flow.on { // it overtakes nothing
		n.agenda.set(&r.event, p.flow.due)
		return line + " comes later"
	}
	r.m.stray--
	if n.path(r.m, r.to.destination(), r.to.local.Addr()) == nil {
		return line + " lost"
	}
	if r.to.conn == r.conn {
		if w := r.to.m.waits.find(r.to.tuple(), r.to.m.now()); w != nil && w.s == r.to {
			r.to.m.waits.end(w)
		}
		r.to.reset()
	}
	return line
}
