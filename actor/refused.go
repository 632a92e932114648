package actor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
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
