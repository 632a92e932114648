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
func (l *line) meterArrived(cost int64) {
	switch {
	case l.metered:
		l.arrived += cost
		l.allowMore()
	case l.bytes > 0 && l.bytes >= l.in.shareBytes() && l != l.in.nobody && l.in.cfg.Meter != nil:
		l.metered = true
		l.sendMetering(Meter)
	}
}

// sendMetering makes the peer meter the line's target, or lets it send something.
func (l *line) sendMetering(what Metering) {
	l.allowed, l.arrived = what == Allow, 0
	l.in.cfg.Meter(l.name, what)
}

// allowMore lets the peer send more to a metered target when little waits for it. The previous
// allowance is in flight until half a window of it has arrived.
func (l *line) allowMore() {
	if l.bytes <= l.in.window/2 && (!l.allowed || l.arrived >= l.in.window/2) {
		l.sendMetering(Allow)
	}
}

// meterConsumed goes on with a metered line whose target may have consumed something.
func (l *line) meterConsumed() {
	if !l.metered {
		return
	}
	for l.route != nil && l.waiting.Len() == 0 && l.pendingBytes() > 0 && l.route.awaitConsumed() {
		l.refresh() // the inbox is not woken otherwise, as nothing waits
	}
	if l.pendingBytes() == 0 {
		l.metered = false
		l.sendMetering(Free)
		return
	}
	l.allowMore()
}

// MeterAgain notifies a peer that has connected again which targets are metered.
func (in *Inbox) MeterAgain() {
	for _, l := range in.order {
		if l.metered {
			l.sendMetering(Meter)
			l.allowMore()
		}
	}
}
