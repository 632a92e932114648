package network

import "time"

// Linux's limits of attempts.
const (
	connectFor = 127 * time.Second         // tcp_syn_retries
	resolveFor = 3 * time.Second           // ARP, or neighbour discovery
	writeFor   = 924600 * time.Millisecond // tcp_retries2
	orphanFor  = 102200 * time.Millisecond // tcp_orphan_retries
	mostAnswer = 5                         // tcp_synack_retries
)

// why is the reason for which a socket's timer is set.
type why uint8

const (
	whyNothing   why = iota
	whyHandshake     // the other half of the handshake
	whyAck           // the acknowledgement of sent data
	whyWindow        // room at the peer
	whyAlive         // any sign of life: keepalive
)

// timer is the timer of one socket.
type timer struct {
	event
	s   *sock
	why why
}

// waitReason returns what s waits for now.
func (s *sock) waitReason() why {
	switch {
	case s.state == stateSynSent, s.state == stateSynReceived:
		return whyHandshake
	case !s.isLive():
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

// armTimer sets the timer to the time of the next action.
func (s *sock) armTimer() {
	n, why := s.m.net, s.waitReason()
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

// nextTry returns when the peer is probed again.
func (s *sock) nextTry() time.Time {
	first := s.retryAfter()
	switch s.timer.why {
	case whyAlive:
		return s.heard.Add(s.options.keepIdle + time.Duration(s.probes)*s.options.keepInterval)
	case whyHandshake:
		if first = firstSyn; s.state == stateSynSent { // the flow repeats the SYN
			if s.isUnreachable() && s.tries == 0 {
				return s.began.Add(resolveFor)
			}
			return s.giveUp()
		}
	}
	at := s.began
	for i := range s.tries + 1 {
		at = at.Add(backoffTime(first, i))
	}
	return at
}

// retryAfter returns a time longer than a lossless acknowledgement takes.
func (s *sock) retryAfter() time.Duration {
	d := firstRetry
	if dst := s.m.net.owners[s.remote.Addr().WithZone("")]; dst != nil {
		there, back := s.m.net.Link(s.m, dst), s.m.net.Link(dst, s.m)
		d += there.Delay + there.Jitter + back.Delay + back.Jitter
	}
	return d
}

// giveUp returns when the connection ends unless the peer is heard from.
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
