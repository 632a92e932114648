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
	line.WriteString(arrowText(f.s.local, f.s.remote))
	most := 0
	for most < f.segs.Len() && (most == 0 || !f.segs.At(most).due.After(now)) {
		most++
	}
	for range n.drawLength(most) {
		if f.segs.Len() == 0 { // the answer has ended the socket
			break
		}
		seg := *f.segs.At(0)
		fmt.Fprintf(&line, " %v", seg.kind)
		if len(seg.data) > 0 {
			fmt.Fprintf(&line, " %d", len(seg.data))
		}
		dst := n.machineReached(f.s.m, f.s.local.Addr(), f.s.destAddr())
		if dst == nil || !dst.receiveSegment(f, seg, &line) {
			f.retrySegment(seg, now, &line)
			return line.String()
		}
	}
	if f.segs.Len() > 0 {
		n.agenda.set(&f.event, f.segs.At(0).due)
	}
	return line.String()
}

// receiveSegment takes the oldest segment of a flow. It returns false if the machine ignores it.
func (m *Machine) receiveSegment(f *flow, seg segment, line *strings.Builder) bool {
	from := f.s
	t := from.peerTuple()
	if to := m.conns[t]; to != nil {
		switch {
		case to.conn == from.conn:
			return to.handleSegment(f, seg, line)
		case seg.kind == kindSyn && to.middlebox:
			to.handleReset() // the SYN has overtaken the reset of the first connection
			return m.handleSYN(f, t, line)
		case seg.kind == kindSyn:
			to.challengeSYN(line)
			return false
		}
	} else if seg.kind == kindSyn {
		return m.handleSYN(f, t, line)
	} else if w := m.waits.find(t, m.now()); w != nil && w.s.conn == from.conn {
		m.handleLate(w, f, seg)
		return true
	}
	f.removeArrived()
	if seg.kind != kindReset {
		m.answerWithReset(from, line)
	}
	return true
}

// handleSegment takes a segment of the connection.
func (s *sock) handleSegment(f *flow, seg segment, line *strings.Builder) bool {
	from := f.s
	s.heard, s.probes = s.m.now(), 0
	switch s.state {
	case stateSynReceived:
		if seg.kind == kindReset {
			f.removeArrived()
			s.handleReset()
			return true
		}
		if !s.completeHandshake() {
			line.WriteString(" dropped, accept queue full")
			return false
		}
		s.handleAcked(from)
	case stateSynSent:
		if seg.kind == kindSynAck {
			f.removeArrived()
			s.state, s.began, s.tries = stateEstablished, s.m.now(), 0
			s.mss = min(s.mss, from.mss)
			s.flow.sendSegment(segment{kind: kindOpen})
			s.handleAcked(from)
			return true
		}
	}
	f.removeArrived()
	switch seg.kind {
	case kindReset:
		s.handleReset()
		return true
	case kindData:
		if s.closed || s.rdShut && (s.state == stateFinWait1 || s.state == stateFinWait2) {
			s.m.answerWithReset(from, line)
			s.flow.dropAll()
			s.closeConnection()
			return true
		}
		s.in.next += uint64(len(seg.data))
		if s.middlebox {
			s.discardBytes(len(seg.data))
		} else {
			s.in.bytes.push(s.throughPath(seg))
		}
	case kindFin:
		s.in.next++
		s.in.bytes.push(s.throughPath(seg))
		s.finCame()
	}
	s.handleAcked(from)
	if seg.kind == kindData || seg.kind == kindFin {
		s.sendAck()
	}
	s.armTimer()
	return true
}

// handleAcked handles the peer's report of what it has received.
func (s *sock) handleAcked(peer *sock) {
	peer.in.shown = peer.in.windowEdge()
	if !s.isLive() {
		return
	}
	s.out.edge = max(s.out.edge, peer.in.shown)
	if next := peer.in.next; next > s.out.una {
		s.out.una = next
		s.began, s.tries = s.m.now(), 0
	}
	s.transmitData()
	if s.out.finSent && s.out.una == s.out.next {
		s.finAcked()
	}
}

// challengeSYN is called when a SYN arrives for a connection that exists: the peer has forgotten
// it. The acknowledgement that answers the SYN makes the peer reset the old connection.
func (s *sock) challengeSYN(line *strings.Builder) {
	if n := s.m.net; n.machineReached(s.m, s.local.Addr(), s.destAddr()) != nil {
		line.WriteString(" resets an old connection,")
		s.handleReset()
	}
}

// handleLate takes a segment of a connection whose socket is gone on this side.
func (m *Machine) handleLate(w *timeWait, f *flow, seg segment) {
	f.removeArrived()
	switch {
	case seg.kind == kindReset:
		m.waits.removeEntry(w)
	case seg.kind == kindFin && w.half:
		w.s.in.next++
		m.waits.renew(w, m.now())
		w.s.sendAck()
	case seg.kind == kindData && w.half:
		m.waits.removeEntry(w)
		m.answerWithReset(f.s, nil)
	}
}

// handleSYN takes a SYN.
func (m *Machine) handleSYN(f *flow, t tuple, line *strings.Builder) bool {
	from := f.s
	if w := m.waits.find(t, m.now()); w != nil {
		m.waits.removeEntry(w)
	}
	l := m.findListener(t)
	if l == nil {
		f.removeArrived()
		m.answerWithReset(from, line)
		return true
	}
	if len(l.accepts) > l.backlog || len(l.requests) > l.backlog {
		line.WriteString(" dropped, backlog full")
		return false
	}
	f.removeArrived()
	s := m.newSock(l.domain, false)
	s.options = l.options
	s.out.size, s.in.size = l.drawChildBuffers()
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
		s.claimPort()
	}
	s.flow.sendSegment(segment{kind: kindSynAck})
	s.armTimer()
	return true
}

// answerWithReset answers a segment with a reset.
func (m *Machine) answerWithReset(from *sock, line *strings.Builder) {
	if m.stray >= mostStray {
		return
	}
	d, lost := m.net.drawTravel(m, from.m)
	if lost {
		return
	}
	r := &stray{m: m, to: from, conn: from.conn}
	r.event = m.net.agenda.newEvent(r)
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
	line := fmt.Sprintf("%v RST", arrowText(r.to.remote, r.to.local))
	if p := r.to.peer; p != nil && p.conn == r.conn && p.flow.on { // it overtakes nothing
		n.agenda.set(&r.event, p.flow.due)
		return line + " comes later"
	}
	r.m.stray--
	if n.machineReached(r.m, r.to.destAddr(), r.to.local.Addr()) == nil {
		return line + " lost"
	}
	if r.to.conn == r.conn {
		if w := r.to.m.waits.find(r.to.tuple(), r.to.m.now()); w != nil && w.s == r.to {
			r.to.m.waits.removeEntry(w)
		}
		r.to.handleReset()
	}
	return line
}
