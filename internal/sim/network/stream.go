package network

import "golang.org/x/sys/unix"

func totalLength(bufs [][]byte) (n int) {
	for _, b := range bufs {
		n += len(b)
	}
	return n
}

// send implements sendmsg(2).
func (s *sock) send(bufs [][]byte) (int, error) {
	if s.state != stateEstablished && s.state != stateCloseWait {
		if err := s.takeError(); err != nil {
			return 0, err
		}
		if s.state == stateSynSent {
			return 0, unix.EAGAIN
		}
		return 0, unix.EPIPE
	}
	total := totalLength(bufs)
	if total == 0 {
		return 0, nil
	}
	room := min(total, s.out.size-s.out.unackedBytes())
	if room <= 0 {
		return 0, unix.EAGAIN
	}
	sent := s.m.net.drawLength(room)
	for left := sent; left > 0; bufs = bufs[1:] {
		k := min(left, len(bufs[0]))
		s.out.bytes.push(bufs[0][:k])
		left -= k
	}
	s.transmitData()
	return sent, nil
}

// recv implements readv(2).
func (s *sock) recv(bufs [][]byte) (int, error) {
	if s.state == stateListen {
		return 0, unix.ENOTCONN
	}
	total := totalLength(bufs)
	if n := min(total, s.in.bytes.len()); n > 0 {
		return s.takeBytes(bufs, s.m.net.drawLength(n)), nil
	}
	switch {
	case total == 0:
		return 0, nil
	case s.finished:
		return 0, nil
	case s.err != 0:
		return 0, s.takeError()
	case s.rdShut:
		return 0, nil
	case s.state == stateClosed:
		return 0, unix.ENOTCONN
	}
	return 0, unix.EAGAIN
}

// takeBytes moves n bytes to bufs. It reports the new room to the peer when there is much.
func (s *sock) takeBytes(bufs [][]byte, n int) int {
	for left := n; left > 0; bufs = bufs[1:] {
		left -= s.in.bytes.pop(bufs[0][:min(left, len(bufs[0]))])
	}
	s.in.before += uint64(n)
	if s.isLive() && s.in.windowEdge()-s.in.shown >= uint64(min(s.in.size/2, 2*s.mss)) {
		s.sendAck()
	}
	return n
}

// transmitData sends as much as the peer has room for.
func (s *sock) transmitData() {
	for s.out.bytes.len() > 0 && s.out.next < s.out.edge {
		n := min(s.out.bytes.len(), s.mss, int(s.out.edge-s.out.next))
		b := make([]byte, s.m.net.drawLength(n))
		s.out.bytes.pop(b)
		s.out.next += uint64(len(b))
		s.flow.sendSegment(segment{kind: kindData, data: b})
	}
	if s.out.fin && !s.out.finSent && s.out.bytes.len() == 0 {
		s.out.finSent = true
		s.out.next++
		s.flow.sendSegment(segment{kind: kindFin})
	}
	s.armTimer()
}

// sendAck reports the received bytes and the room to the peer. A segment in flight carries
// that, too.
func (s *sock) sendAck() {
	if s.flow.segs.Len() == 0 {
		s.flow.sendSegment(segment{kind: kindAck})
	}
}
