package actor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// refusalOf returns the reason to send to a peer whose request ends because of err.
func refusalOf(err error) wire.Refusal {
	var unknown *secure.UnknownKeyError
	switch {
	case errors.As(err, &unknown):
		return wire.RefusedKey
	case errors.Is(err, ErrShutdown):
		return wire.RefusedClosing
	case errors.Is(err, errCrowded):
		return wire.RefusedHandshakes
	case errors.Is(err, unix.EACCES):
		return wire.RefusedOther // the peer is not authenticated
	}
	return wire.RefusedFailed
}

// refuseUnanswered rejects a request that has no answer, with the reason, if the identifier's state
// allows it.
func (it *ident) refuseUnanswered(why wire.Refusal) {
	reject := &cmid.Reject{}
	switch {
	case it.asked == nil:
		return
	case it.handshake.deciding():
		it.conn.Sec.Refuse(why)
		return
	case it.cfg.secured():
		reject.PrivateData = it.cfg.refusal(it.handshake.features, why)
	case it.peer.mode == datapath.ModeMessages:
		reject.PrivateData = why.Reject()
	}
	// illegal if the device has accepted a peer that is not authenticated
	it.doInner(reject, nil, func(Event) {})
}

// refusalError returns the client's error for the data behind the hello of a reject.
func refusalError(data []byte) error {
	if len(data) != 1 {
		return &HandshakeError{What: "the peer refuses it without a reason"}
	}
	return &HandshakeError{What: "the peer refuses it", Err: wire.Refusal(data[0])}
}

// sealedRefusalError returns an authenticated client's error for the body of a refusal.
func sealedRefusalError(body []byte) error {
	why := wire.RefusedOther
	if len(body) > 0 {
		why = wire.Refusal(body[0])
	}
	err := fmt.Errorf("rejected: %s: %w", why.String(), unix.ECONNREFUSED)
	if why.OfIdentity() {
		err = fmt.Errorf("rejected: %s: %w (%w)", why.String(), ErrPeerLimits, unix.ECONNREFUSED)
	}
	return err
}

// refusedBy completes the report of a rejection by a peer that was not authenticated before, or
// never can be: anyone on the path may have sent it.
func (it *ident) refusedBy(ev *cmid.Rejected) {
	h, rest, ok := wire.ParseHello(ev.PrivateData, it.id.Limits().Padded)
	switch {
	case !it.cfg.secured() && h.Features == 0:
		ev.PrivateData = rest
		if why := h.Refusal(); ok && why != 0 {
			ev.Remedy = "the peer refuses it: " + why.String() + ": " + tryAgain
		}
		return
	case ok:
		ev.Err = refusalError(rest)
		it.handshake.countFailedBy(ev.Err)
		ev.Remedy = "both sides need the same Security.Mode, and in PSK mode keys of one identity"
		if errors.Is(ev.Err, unix.EAGAIN) { // the peer has looked at neither
			ev.Remedy = tryAgain
		}
	}
	ev.PrivateData = nil
}
