package actor

import "sync/atomic"

// ListenerInfo is Inspect's report on a listener's connection requests. Requests is the sum of all
// that follow, Strangers and Starved excepted.
type ListenerInfo struct {
	Requests uint64 // all that have arrived
	Accepted uint64
	Rejected uint64 // rejected by the owner, by a handler, or by IDConfig.Route
	TimedOut uint64 // unanswered for too long (IDConfig.AcceptTimeout)
	Dropped  uint64 // ended before they were answered: the peer or the owner has gone, DestroyID
	Refused  Refused
	Pending  int // not answered yet
	// Strangers are connections without a request in the device's protocol, as of IDInfo.AsOf. Only
	// the embedded device sees them.
	Strangers uint64
	// Starved is how often it has paused because the process had no file descriptors, or no memory,
	// to accept a connection, as of IDInfo.AsOf. During a pause clients wait in TCP's queue. Only
	// the embedded device notices.
	Starved uint64
}

// Add adds the counts of another listener.
func (i *ListenerInfo) Add(more ListenerInfo) {
	i.Requests += more.Requests
	i.Accepted += more.Accepted
	i.Rejected += more.Rejected
	i.TimedOut += more.TimedOut
	i.Dropped += more.Dropped
	i.Pending += more.Pending
	i.Strangers += more.Strangers
	i.Starved += more.Starved
	i.Refused.Limits += more.Refused.Limits
	i.Refused.Memory += more.Refused.Memory
	i.Refused.Foreign += more.Refused.Foreign
	i.Refused.Closing += more.Refused.Closing
	i.Refused.Failed += more.Refused.Failed
	i.Refused.Unauthenticated += more.Refused.Unauthenticated
	i.Refused.Rate += more.Refused.Rate
	i.Refused.Identity += more.Refused.Identity
}

// Refused counts connection requests that the runtime has refused, by the reason.
type Refused struct {
	Limits  uint64 // too many identifiers or requests (Limits.Connections, Limits.PendingRequests)
	Memory  uint64 // no memory to receive another connection's messages into
	Foreign uint64 // no hello (IDConfig.RefuseForeign), or one that is too old (VersionError)
	Closing uint64 // the listener or the runtime is being shut down
	// IDConfig.Route, Place or Handler has failed, or the request was lost between two loops
	Failed uint64
	// the peer requires another Security, has no key of the listener's, or has not proved it in
	// time
	Unauthenticated uint64
	Rate            uint64 // too many requests of one address in a second (Limits.RequestRate)
	Identity        uint64 // the peer's identity has reached its limits (PeerLimits)
}

// fate is an outcome of a request.
type fate uint8

const (
	fateRequested fate = iota // it has arrived
	fateAccepted
	fateRejected
	fateTimedOut
	fateDropped
	fateLimits
	fateMemory
	fateForeign
	fateClosing
	fateFailed
	fateUnauthenticated
	fateRate
	fateIdentity
	fates
)

func (f fate) String() string {
	return [...]string{
		"requested", "accepted", "rejected", "timed out", "dropped",
		"too many identifiers or requests", "no memory", "a foreign peer", "shutting down", "failed", "not authenticated",
		"too many of one address", "too many of one identity",
	}[f]
}

// listening counts a listener's requests by their fate. Connections of the listener that live on
// other loops count, too. Any goroutine may use the counts.
type listening struct {
	of  [fates]atomic.Uint64
	cfg *IDConfig // of its connections; nil: there was no request yet
}

// countRequest counts one request. nil: it came through no listener.
func (l *listening) countRequest(f fate) {
	if l != nil {
		l.of[f].Add(1)
	}
}

func (l *listening) listenerInfo() *ListenerInfo {
	var n [fates]uint64
	answered := uint64(0)
	for f := fates - 1; f > fateRequested; f-- {
		n[f] = l.of[f].Load()
		answered += n[f]
	}
	n[fateRequested] = l.of[fateRequested].Load() // last: answered requests have arrived before
	return &ListenerInfo{
		Requests: n[fateRequested], Accepted: n[fateAccepted], Rejected: n[fateRejected], TimedOut: n[fateTimedOut],
		Dropped: n[fateDropped], Pending: int(n[fateRequested] - answered),
		Refused: Refused{
			Limits: n[fateLimits], Memory: n[fateMemory], Foreign: n[fateForeign], Closing: n[fateClosing], Failed: n[fateFailed],
			Unauthenticated: n[fateUnauthenticated], Rate: n[fateRate], Identity: n[fateIdentity],
		},
	}
}
