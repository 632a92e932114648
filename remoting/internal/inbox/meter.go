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

// shareBytes returns how many bytes may wait for a target before the peer should send less.
func (in *Inbox) shareBytes() int64 { return max(in.window, (in.bytes-in.pending)/8) }

// meterArrived takes note of a message for a line.
func (in *Inbox) meterArrived(l *line, cost int64) {
	switch {
	case l.metered:
		l.arrived += cost
		in.allowMore(l)
	case l.bytes > 0 && l.bytes >= in.shareBytes() && l != in.nobody && in.cfg.Meter != nil:
		l.metered = true
		in.sendMetering(l, Meter)
	}
}

// sendMetering makes the peer meter the line's target, or lets it send something.
func (in *Inbox) sendMetering(l *line, what Metering) {
	l.allowed, l.arrived = what == Allow, 0
	in.cfg.Meter(l.name, what)
}

// allowMore lets the peer send more to a metered target when little waits for it. The previous
// allowance is in flight until half a window of it has arrived.
func (in *Inbox) allowMore(l *line) {
	if l.bytes <= in.window/2 && (!l.allowed || l.arrived >= in.window/2) {
		in.sendMetering(l, Allow)
	}
}

// meterConsumed goes on with a metered line whose target may have consumed something.
func (in *Inbox) meterConsumed(l *line) {
	if !l.metered {
		return
	}
	for l.route != nil && l.waiting.Len() == 0 && l.pendingBytes() > 0 && in.awaitConsumed(l.route) {
		in.refreshLine(l) // the inbox is not woken otherwise, as nothing waits
	}
	if l.pendingBytes() == 0 {
		l.metered = false
		in.sendMetering(l, Free)
		return
	}
	in.allowMore(l)
}

// MeterAgain notifies a peer that has connected again which targets are metered.
func (in *Inbox) MeterAgain() {
	for _, l := range in.order {
		if l.metered {
			in.sendMetering(l, Meter)
			in.allowMore(l)
		}
	}
}
