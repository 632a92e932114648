package remoting

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// withReason adds a peer's reason to an error, quoted if need be. The reason may begin with the
// same text: the peer has made it of such an error.
func withReason(err error, reason string) error {
	if reason = strings.TrimPrefix(strings.TrimPrefix(reason, err.Error()), ": "); reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, plain.Quote(reason))
}

// errLate is the cause when greetingTime is over. A device may have lost a first message, which the
// next connection repeats.
var errLate = fmt.Errorf("%w: no hello, or no answer to ours, within %v", ErrProtocol, greetingTime)

// isTransient reports whether an attempt to connect has not really failed: the other node is there,
// and has answered. EAGAIN alone may be this node's, which has run out of something.
func isTransient(err error) bool {
	for _, e := range []error{
		errLate, reconnect.ErrSimultaneous, reconnect.ErrReplaced, reconnect.ErrStale, reconnect.ErrElsewhere, reconnect.ErrUnknownNode,
		reconnect.ErrTooManyNodes, reconnect.ErrAgain,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return isHandshake(err) && errors.Is(err, unix.EAGAIN)
}

func isHandshake(err error) bool {
	_, ok := errors.AsType[*rdma.HandshakeError](err)
	return ok
}

// errNoReason is the cause when the peer has accepted, and has ended the connection in order before
// its hello.
var errNoReason = errors.New("the peer has ended the connection before its hello, without a reason")

// unreachableWith returns ErrUnreachable with the reason of the last failed attempt; nil: none.
func unreachableWith(why error) error {
	if why == nil {
		return ErrUnreachable
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, why)
}

// isUnproved reports whether a dial has failed because of keys, certificates or identities.
func isUnproved(err error) bool {
	return errors.Is(err, reconnect.ErrWrongIdentity) || isHandshake(err) && !errors.Is(err, unix.EAGAIN)
}

// parting is why a connection is to end.
type parting struct {
	code frame.Code // of the goodbye ...
	err  error
	said bool // ... chosen by the peer, and received in its goodbye
}

// partingOf converts the goodbye of a peer.
func partingOf(r *frame.Record) *parting {
	var err error
	switch r.Code {
	case frame.GoodbyeNoHello:
		err = errLate
	case frame.GoodbyeShutdown:
		err = ErrPeerShutdown
	case frame.GoodbyeBlocked:
		err = ErrBlocked
	default:
		err = ErrProtocol
	}
	return &parting{err: withReason(err, r.Reason), said: true}
}

// notSpawned returns the error when nothing was spawned, with its cause.
func notSpawned(err error) error { return fmt.Errorf("%w: %w", ErrSpawn, err) }
