package network

import (
	"time"

	"golang.org/x/sys/unix"
)

// How long Linux tries.
const (
	connectFor = 127 * time.Second         // tcp_syn_retries
	resolveFor = 3 * time.Second           // ARP, or neighbour discovery
	writeFor   = 924600 * time.Millisecond // tcp_retries2
	orphanFor  = 102200 * time.Millisecond // tcp_orphan_retries
	mostAnswer = 5                         // tcp_synack_retries
)

// why is what a socket's timer waits for.
type why uint8

const (
	whyNothing   why = iota
	whyHandshake     // the other half of the handshake
	whyAck           // that the peer acknowledges what was sent
	whyWindow        // that the peer has room
	whyAlive         // any sign of life: keepalive
)

// timer is the timer of one socket.
type timer struct {
	event
	s   *sock
	why why
}

// why is what s waits for now.
func (s *sock) why() why {
	switch {
	case s.state == stateSynSent, s.state == stateSynReceived:
		return whyHandshake
	case !s.live():
		return whyNothing
	case s.out.next > s.out.una:
		return whyAck
	case s.out.bytes.len() > 0:
		return whyWindow
	case s.options.keepAlive:
		return whyAlive
	}
	return whyNothing
}

// arm sets the timer to the next time at which there is something to do.
func (s *sock) arm() {
	n, why := s.m.net, s.why()
	if why != s.timer.why {
		s.timer.why = why
		if why == whyAck || why == whyWindow {
			s.began, s.tries = s.m.now(), 0
		}
	}
	if why == whyNothing {
		n.agenda.stop(&s.timer.event)
		return
	}
	due := s.nextTry()
	if end := s.giveUp(); end.Before(due) {
		due = end
	}
	n.agenda.set(&s.timer.event, due)
}

// nextTry is when the peer is asked again.
func (s *sock) nextTry() time.Time {
	first := s.retryAfter()
	switch s.timer.why {
	case whyAlive:
		return s.heard.Add(s.options.keepIdle + time.Duration(s.probes)*s.options.keepInterval)
	case whyHandshake:
		if first = firstSyn; s.state == stateSynSent { // the flow repeats the SYN
			if s.unreachable() && s.tries == 0 {
				return s.began.Add(resolveFor)
			}
			return s.giveUp()
		}
	}
	at := s.began
	for i := range s.tries + 1 {
		at = at.Add(backoff(first, i))
	}
	return at
}

// retryAfter is longer than an acknowledgement takes when nothing is lost.
func (s *sock) retryAfter() time.Duration {
	d := firstRetry
	if dst := s.m.net.owners[s.remote.Addr().WithZone("")]; dst != nil {
		there, back := s.m.net.Link(s.m, dst), s.m.net.Link(dst, s.m)
		d += there.Delay + there.Jitter + back.Delay + back.Jitter
	}
	return d
}

// unreachable says whether the machine's network knows that nobody has the peer's address.
func (s *sock) unreachable() bool {
	to := s.remote.Addr()
	if s.m.has(to) {
		return false
	}
	dst := s.m.net.owners[to.WithZone("")]
	return dst == nil || dst.off
}

// giveUp is when the connection ends unless the peer is heard of.
func (s *sock) giveUp() time.Time {
	user := s.options.userTimeout
	switch s.timer.why {
	case whyAlive:
		if user > 0 && s.probes > 0 {
			return s.heard.Add(max(user, s.options.keepIdle))
		}
		return s.heard.Add(s.options.keepIdle + time.Duration(s.options.keepCount)*s.options.keepInterval)
	case whyHandshake:
		if s.state == stateSynReceived {
			return s.began.Add(firstSyn<<(mostAnswer+1) - firstSyn)
		}
		if user > 0 && user < connectFor {
			return s.began.Add(user)
		}
		return s.began.Add(connectFor)
	}
	switch {
	case user > 0:
		return s.began.Add(user)
	case s.closed:
		return s.began.Add(orphanFor)
	case s.timer.why == whyWindow && s.heard.After(s.began):
		return s.heard.Add(writeFor)
	}
	return s.began.Add(writeFor)
}

// happen asks the peer for a sign of life, or gives the connection up.
func (t *timer) happen() string {
	s := t.s
	line := arrow(s.local, s.remote)
	if now := s.m.now(); !now.Before(s.giveUp()) {
		return line + s.timeOut()
	}
	switch {
	case s.state == stateSynSent:
		if s.unreachable() {
			s.err = unix.EHOSTUNREACH
			s.abort()
			return line + " host unreachable"
		}
		s.tries++
		s.arm()
		return line + " has found the host"
	case t.why == whyAlive:
		s.probes++
		line += " keepalive"
	default:
		s.tries++
		line += " probe"
	}
	if s.flow.segs.Len() == 0 { // otherwise the flow tries again
		line += s.probe()
	}
	s.arm()
	return line
}

// timeOut gives the connection up.
func (s *sock) timeOut() string {
	if s.state != stateSynReceived {
		s.err = unix.ETIMEDOUT
	}
	if s.timer.why == whyAlive || s.closed {
		s.abort()
	} else {
		s.flow.drop()
		s.done()
	}
	return " times out"
}

// probe asks the peer what it has received, and hears the answer at once.
func (s *sock) probe() string {
	n := s.m.net
	dst := n.path(s.m, s.local.Addr(), s.remote.Addr())
	if dst == nil {
		return " lost"
	}
	back := n.path(dst, s.remote.Addr(), s.local.Addr()) == s.m
	t := s.tuple()
	t.local, t.remote = t.remote, t.local
	peer := dst.conns[t]
	if peer == nil || peer.conn != s.conn {
		peer = nil
		if w := dst.waits.find(t, dst.now()); w != nil && w.s.conn == s.conn {
			if peer = w.s; w.half && s.out.dataTo() > peer.in.next { // nobody will read it
				dst.waits.end(w)
				peer = nil
			}
		}
	}
	switch {
	case peer == nil:
		if back {
			s.reset()
			return " refused"
		}
		return " lost"
	case peer.state == stateSynReceived && !peer.established(), peer.state == stateSynSent:
		return " dropped"
	}
	peer.heard, peer.probes = s.m.now(), 0
	peer.acked(s)
	if !back {
		return " not answered"
	}
	s.heard, s.probes = s.m.now(), 0
	if s.state == stateSynReceived && !s.established() {
		return " dropped, accept queue full"
	}
	s.acked(peer)
	return " answered"
}
