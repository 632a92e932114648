package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/cmid"
)

// Each request costs its listener's loop some work, and a secured one a computation, whatever
// becomes of it. One network address may have that done so often in a second.

// inTime counts a request from a. Not ok: there are too many in this time. A process of this
// machine takes processor time from the loop anyway, whether it connects or not.
func (l *loop) inTime(a Addr) (ok bool) {
	rate := l.rt.cfg.Limits.RequestRate
	return rate < 0 || onLoopback(a) || l.rates.Take(a.Source(), rate, l.el.Now())
}

// tooOften rejects such a request.
func (l *loop) tooOften(in *incoming) {
	l.rt.log.Warn("rdma: too many requests of one address (Limits.RequestRate): rejected", "id", in.id.Handle(), "peer", in.r.Peer,
		"local", in.r.Local)
	l.refused(in.id, in.via, fateRate)
	reject := new(cmid.Reject)
	if in.cfg.secured() {
		reject.PrivateData = in.cfg.refusal(in.cfg.features(0), secure.RefusedRate)
	}
	in.id.Do(reject)
	l.discard(in.id, nil)
}
