package cmid

import "fmt"

// RejectReason is why a peer rejected: InfiniBand's REJ reason (enum ib_cm_rej_reason), or a negative errno from an iWARP peer,
// where the reason does not travel.
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
	RejectRefused           RejectReason = -111 // iWARP: nobody listens, or the reply demands what we do not do
)

var rejectText = map[RejectReason]string{
	RejectNoQP:              "the peer has no queue pair",
	RejectNoResources:       "the peer is out of resources",
	RejectTimeout:           "the peer gave up waiting",
	RejectUnsupported:       "unsupported request",
	RejectInvalidCommID:     "invalid communication id",
	RejectInvalidServiceID:  "nobody listens on that port",
	RejectInvalidTransport:  "invalid transport service type",
	RejectStaleConnection:   "the peer still has a connection with this queue pair number",
	RejectInvalidGID:        "invalid gid",
	RejectInvalidMTU:        "invalid path mtu",
	RejectInsufficientDepth: "insufficient responder resources",
	RejectConsumerDefined:   "rejected by the application",
	RejectInvalidRNRRetry:   "rnr retry count too low",
	RejectDuplicateCommID:   "duplicate communication id",
	RejectVendorOption:      "vendor option rejected",
	RejectReset:             "rejected by the peer",
	RejectRefused:           "nobody listens on that port",
}

// String says the reason in words.
func (r RejectReason) String() string {
	if t, ok := rejectText[r]; ok {
		return t
	}
	return fmt.Sprintf("reject reason %d", int32(r))
}
