package remoting

import (
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
)

// A connection has no flow control for each target: it is read or not. So that one target with much
// that it has not consumed does not stop those of all others, the node that reads says to the other
// one what to do with such a target's messages: Meter, to keep them; Allow, to send a little,
// whenever the target has consumed enough; and Free, when it has consumed everything. They are
// Refused records with codes that older nodes only publish. What is kept has a lane of its own at
// the sender (outbox.Queue), so that its senders are those whom Config.Overflow is for.

// meter has the peer send less to a target, or more.
func (in *receiving) meter(target string, what inbox.Metering) {
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

// metered does what the peer says about one of its targets.
func (in *receiving) metered(r *frame.Record) {
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
	p.unlock()
}
