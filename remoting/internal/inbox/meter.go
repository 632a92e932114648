package inbox

// Metering notifies the peer how to treat the messages for a target.
type Metering uint8

// A target with a share of the inbox is metered. The peer queues its messages, and sends a little
// whenever that is allowed. When the target has consumed everything, it is free again.
const (
	Meter Metering = iota
	Allow
	Free
)

// share is how many bytes may wait for one target before the peer should send less to it.
func (in *Inbox) share() int64 { return max(in.window, (in.bytes-in.pending)/8) }

// meterArrived takes note of a message for a line.
func (in *Inbox) meterArrived(l *line, cost int64) {
	switch {
	case l.metered:
		l.arrived += cost
		in.allow(l)
	case l.bytes > 0 && l.bytes >= in.share() && l != in.nobody && in.cfg.Meter != nil:
		l.metered = true
		in.notify(l, Meter)
	}
}

// notify has the peer meter the line's target, or let it have something.
func (in *Inbox) notify(l *line, what Metering) {
	l.allowed, l.arrived = what == Allow, 0
	in.cfg.Meter(l.name, what)
}

// allow lets a metered line have more when little waits in it. The previous allowance is in flight
// until half a window of it has arrived.
func (in *Inbox) allow(l *line) {
	if l.bytes <= in.window/2 && (!l.allowed || l.arrived >= in.window/2) {
		in.notify(l, Allow)
	}
}

// meterConsumed goes on with a metered line whose target may have consumed something.
func (in *Inbox) meterConsumed(l *line) {
	if !l.metered {
		return
	}
	for l.route != nil && l.waiting.Len() == 0 && l.debt() > 0 && in.await(l.route) {
		in.look(l) // the inbox is not woken otherwise, as nothing waits
	}
	if l.debt() == 0 {
		l.metered = false
		in.notify(l, Free)
		return
	}
	in.allow(l)
}

// MeterAgain notifies a peer that has connected again which targets are metered.
func (in *Inbox) MeterAgain() {
	for _, l := range in.order {
		if l.metered {
			in.notify(l, Meter)
			in.allow(l)
		}
	}
}
