package cmid

import "fmt"

// RejectReason is why a peer rejected: InfiniBand's REJ reason (enum ib_cm_rej_reason), or a
// negative errno from an iWARP peer, where the reason does not travel.
type RejectReason int32

// The reasons an application meets.
const (
	RejectNoQP              RejectReason = 1
	RejectNoResources       RejectReason = 3
	RejectTimeout           RejectReason = 4
	RejectUnsupported       RejectReason = 5
	RejectInvalidCommID     RejectReason = 6
	RejectInvalidServiceID  RejectReason = 8
	RejectInvalidTransport  RejectReason = 9
	RejectStaleConnection   RejectReason = 10
	RejectInvalidGID        RejectReason = 12
	RejectInvalidMTU        RejectReason = 26
	RejectInsufficientDepth RejectReason = 27
	RejectConsumerDefined   RejectReason = 28
	RejectInvalidRNRRetry   RejectReason = 29
	RejectDuplicateCommID   RejectReason = 30
	RejectVendorOption      RejectReason = 35
	RejectReset             RejectReason = -104 // iWARP: rejected, or closed before the reply
	// iWARP: no listener, or the reply demands something that is not supported
	RejectRefused RejectReason = -111
)

// reason is a reject reason's name in the InfiniBand specification, and its meaning to the rejected
// side.
type reason struct{ name, meaning string }

var reasons = map[RejectReason]reason{
	RejectNoQP:              {"no qp", "the peer has no queue pair"},
	RejectNoResources:       {"no resources", "the peer is out of resources"},
	RejectTimeout:           {"timeout", "the peer gave up waiting"},
	RejectUnsupported:       {"unsupported", "the peer does not support the request"},
	RejectInvalidCommID:     {"invalid comm id", "the peer does not know the connection"},
	RejectInvalidServiceID:  {"invalid service id", "nobody listens on that port"},
	RejectInvalidTransport:  {"invalid transport", "the listener has another queue pair type"},
	RejectStaleConnection:   {"stale connection", "the peer still has a connection with this queue pair number"},
	RejectInvalidGID:        {"invalid gid", "the gid is not the peer's"},
	RejectInvalidMTU:        {"invalid mtu", "the peer cannot use the path's mtu"},
	RejectInsufficientDepth: {"insufficient responder resources", "the peer cannot serve that many reads"},
	RejectConsumerDefined:   {"consumer defined", "by the application"},
	RejectInvalidRNRRetry:   {"invalid rnr retry", "the peer wants a higher rnr retry count"},
	RejectDuplicateCommID:   {"duplicate comm id", "the connection exists already"},
	RejectVendorOption:      {"vendor option", "by the application, for its vendor options"},
	RejectReset:             {"reset", "by the peer"},
	RejectRefused:           {"refused", "nobody listens on that port"},
}

// ByApplication reports whether the peer's application has rejected, and not its CM on its own
// account: InfiniBand's 28 and 35, and iWARP's reset.
func (r RejectReason) ByApplication() bool {
	return r == RejectConsumerDefined || r == RejectVendorOption || r == RejectReset
}

// String describes the reason in words that fit behind "rejected: ".
func (r RejectReason) String() string {
	if t, ok := reasons[r]; ok {
		return t.meaning
	}
	return fmt.Sprintf("for reason %d", int32(r))
}

// MarshalText is String's text.
func (r RejectReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// codeText returns the name and the number.
func (r RejectReason) codeText() string {
	if t, ok := reasons[r]; ok {
		return fmt.Sprintf("%s, %d", t.name, int32(r))
	}
	return fmt.Sprint(int32(r))
}
