package remoting

import (
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
)

// A connection has no flow control for each target: it is read or not. So that one target with many
// unconsumed messages does not stop all others, the reading node notifies the other one how to
// treat such a target's messages: Meter, to keep them; Allow, to send a little, whenever the
// target has consumed enough; and Free, when it has consumed everything. They are Refused records
// with codes that older nodes only publish. Kept messages have a separate lane at the sender
// (outbox.Queue), so that Config.Overflow applies to their senders.

// sendMetering asks the peer to send less to a target, or more.
func (in *receiving) sendMetering(target string, what inbox.Metering) {
	if in.greeting != open {
		return
	}
	r := frame.Record{Kind: frame.KindRefused, Target: target}
	switch what {
	case inbox.Meter:
		r.Code, r.Reason = frame.RefusedMeter, "the target is slow: keep what is for it"
	case inbox.Allow:
		r.Code, r.Reason = frame.RefusedAllow, "the slow target has room"
	case inbox.Free:
		r.Code, r.Reason = frame.RefusedFree, "the target is slow no longer"
	}
	in.p.putSystem(&r, nil)
}

// applyMetering applies the peer's metering of one of its targets.
func (in *receiving) applyMetering(r *frame.Record) {
	p := in.p
	p.mu.Lock()
	switch r.Code {
	case frame.RefusedMeter:
		p.user.Meter(r.Target)
	case frame.RefusedAllow:
		p.user.Allow(r.Target)
	case frame.RefusedFree:
		p.user.Free(r.Target)
	}
	p.unlockAndWake()
}
