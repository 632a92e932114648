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

// refusalOf is the reason that a peer gets when its request ends because of err.
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
		return wire.RefusedOther // of a handshake: nobody knows who the peer is
	}
	return wire.RefusedFailed
}

// refuseUnanswered gives the peer of a request that has no answer the reason why it ends, where the
// device or the handshake lets it have one.
func (it *ident) refuseUnanswered(why wire.Refusal) {
	reject := &cmid.Reject{}
	switch {
	case !it.request:
		return
	case it.deciding():
		it.conn.Refuse(why)
		return
	case !it.legal(reject):
		return // the device has accepted it, and the peer is not authenticated
	case it.cfg.secured():
		reject.PrivateData = it.cfg.refusal(it.features, why)
	case it.peerMode == datapath.ModeMessages:
		reject.PrivateData = why.Reject()
	}
	it.do(&asked{cmd: reject, then: func(Event) {}})
}

// refusalError is what a client makes of what is behind the hello of a reject.
func refusalError(data []byte) error {
	if len(data) != 1 {
		return &HandshakeError{What: "the peer refuses it and does not say why"}
	}
	return &HandshakeError{What: "the peer refuses it", Err: wire.Refusal(data[0])}
}

// sealedRefusalError is what an authenticated client makes of a refusal.
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
