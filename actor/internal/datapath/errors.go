package datapath

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// Why a Send failed; errors.Is finds them in *SendFailed.
var (
	// ErrQueueFull: the peer does not keep up, and the connection's queue, or its mailbox, has no
	// room. Wait for *Writable.
	ErrQueueFull = errors.New("the connection's send queue is full")
	// ErrTooLarge: the message is larger than the peer takes (Established.MaxMessage).
	ErrTooLarge = errors.New("message too large")
	// ErrFlushed: the connection ended first. Closed says how many may have arrived nevertheless.
	ErrFlushed = errors.New("the connection ended first")
)

// ErrRemoteAccess is why an operation failed whose memory the peer's device refuses: never
// granted, revoked, of another connection, not with that right, or outside. The connection is
// over. iWARP says so in Disconnected.Err, where the operation itself is ErrFlushed, and a Write
// may have been Done.
var ErrRemoteAccess = errors.New("the peer's device refuses the access")

// ErrPeerLost is found (errors.Is) in the error of a connection that has ended without its peer's
// goodbye: the peer's process was killed, its machine or the network is gone, or its device gave
// the connection up.
var ErrPeerLost = errors.New("the connection has ended without the peer's goodbye")

// LostError is why a connection ended that its peer has not ended: Disconnected.Err and Closed.Err.
// errors.Is: ErrPeerLost, and an errno: ECONNRESET, ETIMEDOUT when the peer was silent for too
// long, or the device's. Peers of version 2 say no goodbye: theirs is no such end.
type LostError struct{ Err error }

func (e *LostError) Error() string { return ErrPeerLost.Error() + ": " + e.Err.Error() }

// Unwrap gives ErrPeerLost and what is known.
func (e *LostError) Unwrap() []error { return []error{ErrPeerLost, e.Err} }

// QueuePairError is why a connection has ended whose queue pair has failed: the first work request
// that completed with an error, or the device's own word. errors.Is: ErrRemoteAccess and EACCES for
// an access that the peer refuses, EMSGSIZE for a message that is longer than our receive,
// ErrPeerLost and ETIMEDOUT for a peer that acknowledges nothing or has no receives for too long,
// ErrPeerLost and EIO for one whose own queue pair has failed or gone, EIO for everything else.
type QueuePairError struct {
	Op verbs.Opcode // of the work request
	// StatusSuccess: not a work request has failed but the queue pair by itself, as
	// IBV_EVENT_QP_FATAL says
	Status verbs.Status
	Err    error // what else is known, such as a stream's reset; may be nil
}

func (e *QueuePairError) Error() string {
	s := "the queue pair has failed by itself"
	if e.Status != verbs.StatusSuccess {
		s = fmt.Sprintf("the queue pair has failed: %v: %v", e.Op, e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the errno, and what else is known.
func (e *QueuePairError) Unwrap() []error {
	var errs []error
	switch e.Status {
	case verbs.StatusRemAccess:
		errs = []error{ErrRemoteAccess, unix.EACCES}
	case verbs.StatusLocLen:
		errs = []error{unix.EMSGSIZE}
	case verbs.StatusRetryExc, verbs.StatusRNRRetryExc:
		errs = []error{ErrPeerLost, unix.ETIMEDOUT}
	case verbs.StatusRemOp:
		// rxe says so when the peer's queue pair has gone, as that of a process that was killed
		errs = []error{ErrPeerLost, unix.EIO}
	default:
		errs = []error{unix.EIO}
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// vague reports whether e is rather a consequence of the failure than its cause. What iWARP calls a
// general or a fatal error is a stream that was ended while something was sent.
func (e *QueuePairError) vague() bool {
	switch e.Status {
	case verbs.StatusGeneral, verbs.StatusFatal:
		return true
	}
	return e.follows()
}

// follows reports whether something else has gone before: nothing is flushed, or refused, of a
// queue pair that is as it should be.
func (e *QueuePairError) follows() bool {
	return e.Status == verbs.StatusFlushed || e.Status == verbs.StatusSuccess && e.Err != nil
}

// ResourceError says that a device, or the half of Limits.ReceiveMemory, has no room for what a
// connection needs from its beginning. Connect and Accept fail with it; IDConfig says how much
// they need. errors.Is: ENOMEM.
type ResourceError struct {
	Device      string
	What        string // of which there is not enough
	Need, Limit int    // for one connection, and for all together
	Err         error  // may be nil
}

func (e *ResourceError) Error() string {
	s := fmt.Sprintf("%s cannot hold another connection that needs %d %s; the limit is %d: grant fewer credits or smaller messages (IDConfig)",
		e.Device, e.Need, e.What, e.Limit)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives ENOMEM.
func (e *ResourceError) Unwrap() error { return unix.ENOMEM }

var (
	ErrNotConnected = fmt.Errorf("not connected: wait for Established (%w)", unix.ENOTCONN)
	errFlushed      = fmt.Errorf("%w (%w)", ErrFlushed, unix.ENOTCONN)
	errClosing      = fmt.Errorf("the connection is being closed: %w (%w)", ErrFlushed, unix.ESHUTDOWN)
)

// Flushed is what becomes of messages when their connection ends.
func Flushed() error { return errFlushed }

// opError is what an operation's status means; nil for success.
func opError(status verbs.Status) error {
	switch status {
	case verbs.StatusSuccess:
		return nil
	case verbs.StatusRemAccess:
		return fmt.Errorf("%w (%w)", ErrRemoteAccess, unix.EACCES)
	}
	return sendError(status)
}

// sendError is what a message's status means that is not success.
func sendError(status verbs.Status) error {
	if status == verbs.StatusFlushed {
		return Flushed()
	}
	return fmt.Errorf("%v: %w (%w)", status, ErrFlushed, unix.EIO)
}

// errNoRoom is what post says when the device does not take the work request now; ENOMEM is memory
// to send from that cannot be had.
var errNoRoom = fmt.Errorf("the device's send queue is full: %w", unix.ENOMEM)

// RetryAfter is how long a device gets that has no room although nothing is under way whose end it
// would be reported.
const RetryAfter = 10 * time.Millisecond
