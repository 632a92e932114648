package network

import "time"

const (
	waitFor  = time.Minute // how long TIME_WAIT lasts, and FIN_WAIT_2 of a closed socket
	mostWait = 4096        // per machine
)

// timeWait is a connection that is over, except for segments in flight. It needs no socket.
type timeWait struct {
	s    *sock
	half bool // it is in FIN_WAIT_2: the peer's FIN has not arrived
	over time.Time
	gone bool
}

// waits is the timeWaits of a machine.
type waits struct {
	table map[tuple]*timeWait
	order []*timeWait // the oldest first; some may have ended early
}

// add starts the timeWait of a connection at now, if there is room.
func (l *waits) add(s *sock, half bool, now time.Time) {
	if len(l.table) >= mostWait {
		return
	}
	l.removeExpired(now)
	w := &timeWait{s: s, half: half, over: now.Add(waitFor)}
	l.table[s.tuple()] = w
	l.order = append(l.order, w)
}

// removeExpired removes the timeWaits whose time is over.
func (l *waits) removeExpired(now time.Time) {
	i := 0
	for i < len(l.order) && (l.order[i].gone || !l.order[i].over.After(now)) {
		l.removeEntry(l.order[i])
		i++
	}
	l.order = l.order[i:]
}

func (l *waits) removeEntry(w *timeWait) {
	if !w.gone {
		w.gone = true
		delete(l.table, w.s.tuple())
	}
}

// find returns the timeWait of a connection, or nil.
func (l *waits) find(t tuple, now time.Time) *timeWait {
	l.removeExpired(now)
	return l.table[t]
}

// renew restarts a timeWait, as a full one.
func (l *waits) renew(w *timeWait, now time.Time) {
	l.removeEntry(w)
	l.add(w.s, false, now)
}
