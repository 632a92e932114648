package network

import (
	"golang.org/x/sys/unix"
)

// queue is bytes in order.
type queue struct {
	b    []byte
	head int
}

func (q *queue) len() int { return len(q.b) - q.head }

func (q *queue) clear() { *q = queue{} }

func (q *queue) push(b []byte) {
	if q.head > 0 && q.head >= len(q.b)/2 {
		q.b = q.b[:copy(q.b, q.b[q.head:])]
		q.head = 0
	}
	q.b = append(q.b, b...)
}

// pop moves up to len(b) bytes to b.
func (q *queue) pop(b []byte) int {
	n := copy(b, q.b[q.head:])
	if q.head += n; q.head == len(q.b) {
		q.b, q.head = q.b[:0], 0
	}
	return n
}

// sender is what a connection sends. Positions count from the beginning of the connection. The FIN
// has one, too.
type sender struct {
	size    int    // the most bytes that may wait for an acknowledgement
	bytes   queue  // not sent yet
	una     uint64 // everything before it is acknowledged
	next    uint64 // everything before it is sent
	edge    uint64 // the peer has room for everything before it
	fin     bool   // a FIN follows bytes
	finSent bool
}

// dataTo is the end of the bytes that are sent.
func (o *sender) dataTo() uint64 {
	if o.finSent {
		return o.next - 1
	}
	return o.next
}

// waiting is how many bytes are not acknowledged.
func (o *sender) waiting() int { return int(o.next-o.una) + o.bytes.len() }

// roomy is Linux's rule for writability: a third of the buffer is free.
func (o *sender) roomy() bool { return o.size-o.waiting() >= (o.waiting()+1)/2 }

// receiver is what a connection has received.
type receiver struct {
	size   int   // of the buffer
	bytes  queue // not read yet
	next   uint64
	shown  uint64 // the edge that the peer knows
	before uint64 // of the peer's bytes, how many were read
}

// edge is the end of what there is room for.
func (i *receiver) edge() uint64 { return i.before + uint64(max(i.size, i.bytes.len())) }

func length(bufs [][]byte) (n int) {
	for _, b := range bufs {
		n += len(b)
	}
	return n
}

// send is sendmsg(2).
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
	total := length(bufs)
	if total == 0 {
		return 0, nil
	}
	room := min(total, s.out.size-s.out.waiting())
	if room <= 0 {
		return 0, unix.EAGAIN
	}
	sent := s.m.net.short(room)
	for left := sent; left > 0; bufs = bufs[1:] {
		k := min(left, len(bufs[0]))
		s.out.bytes.push(bufs[0][:k])
		left -= k
	}
	s.transmit()
	return sent, nil
}

// recv is readv(2).
func (s *sock) recv(bufs [][]byte) (int, error) {
	if s.state == stateListen {
		return 0, unix.ENOTCONN
	}
	total := length(bufs)
	if n := min(total, s.in.bytes.len()); n > 0 {
		return s.take(bufs, s.m.net.short(n)), nil
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

// take moves n bytes to bufs. It shows the peer the new room when there is much.
func (s *sock) take(bufs [][]byte, n int) int {
	for left := n; left > 0; bufs = bufs[1:] {
		left -= s.in.bytes.pop(bufs[0][:min(left, len(bufs[0]))])
	}
	s.in.before += uint64(n)
	if s.live() && s.in.edge()-s.in.shown >= uint64(min(s.in.size/2, 2*s.mss)) {
		s.acknowledge()
	}
	return n
}

// transmit sends what the peer has room for.
func (s *sock) transmit() {
	for s.out.bytes.len() > 0 && s.out.next < s.out.edge {
		n := min(s.out.bytes.len(), s.mss, int(s.out.edge-s.out.next))
		b := make([]byte, s.m.net.short(n))
		s.out.bytes.pop(b)
		s.out.next += uint64(len(b))
		s.flow.push(segment{kind: kindData, data: b})
	}
	if s.out.fin && !s.out.finSent && s.out.bytes.len() == 0 {
		s.out.finSent = true
		s.out.next++
		s.flow.push(segment{kind: kindFin})
	}
	s.arm()
}

// acknowledge has the peer learn what has come and how much room there is. A segment that is on its
// way brings that, too.
func (s *sock) acknowledge() {
	if s.flow.segs.Len() == 0 {
		s.flow.push(segment{kind: kindAck})
	}
}

// acked is called when the peer has shown what it has received.
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
