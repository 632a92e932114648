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
	// ErrTooLarge: the message is larger than Established.MaxMessage. The text names the field that
	// sets that limit.
	ErrTooLarge = errors.New("message too large")
	// ErrFlushed: the connection ended first. Closed has the number of messages that may have
	// arrived nevertheless.
	ErrFlushed = errors.New("the connection ended first")
)

// ErrRemoteAccess: the peer's device has refused an operation, because its memory was never
// granted, was revoked, belongs to another connection, lacks the right or is too short. The
// connection is over. On iWARP this error is in Disconnected.Err; the operation itself fails with
// ErrFlushed, or, if it is a Write, may have been answered with WriteDone.
var ErrRemoteAccess = errors.New("the peer's device refuses the access")

// ErrPeerLost is found (errors.Is) in the error of a connection that has ended without its peer's
// goodbye: the peer's process was killed, its machine or the network is gone, or its device gave
// the connection up.
var ErrPeerLost = errors.New("the connection has ended without the peer's goodbye")

// LostError is in Disconnected.Err and Closed.Err when a connection has ended, but the peer has not
// ended it. errors.Is finds ErrPeerLost and an errno: ETIMEDOUT when the peer was silent for too
// long, the device's, or ECONNRESET.
type LostError struct{ Err error }

func (e *LostError) Error() string { return ErrPeerLost.Error() + ": " + e.Err.Error() }

// Unwrap returns ErrPeerLost and the known cause.
func (e *LostError) Unwrap() []error { return []error{ErrPeerLost, e.Err} }

// QueuePairError is the reason when a connection has ended because its queue pair has failed: the
// first work request that completed with an error, or the device's event. errors.Is finds
// ErrRemoteAccess and EACCES for an access that the peer refuses; EMSGSIZE for a message that is
// longer than our receive; ErrPeerLost and ETIMEDOUT for a peer that acknowledges nothing, or has
// no receives, for too long; ErrPeerLost and EIO for a peer whose own queue pair has failed or
// gone; EIO for everything else.
type QueuePairError struct {
	Op verbs.Opcode // of the work request
	// StatusSuccess: the queue pair has failed and no work request (IBV_EVENT_QP_FATAL)
	Status verbs.Status
	Err    error // further cause, such as a stream's reset; may be nil
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

// Unwrap returns the errno, and the further cause.
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
		// rxe reports this when the peer's queue pair has gone, as that of a killed process
		errs = []error{ErrPeerLost, unix.EIO}
	default:
		errs = []error{unix.EIO}
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// isVague reports whether e is more likely a consequence of the failure than its cause. On iWARP a
// general or fatal error means that the stream ended while something was being sent.
func (e *QueuePairError) isVague() bool {
	switch e.Status {
	case verbs.StatusGeneral, verbs.StatusFatal:
		return true
	}
	return e.isConsequence()
}

// isConsequence reports whether e must be the consequence of an earlier failure: a healthy queue
// pair neither flushes nor refuses work requests.
func (e *QueuePairError) isConsequence() bool {
	return e.Status == verbs.StatusFlushed || e.Status == verbs.StatusSuccess && e.Err != nil
}

// ResourceError: a device, or the half of Limits.ReceiveMemory that receives may have, has no room
// for the initial needs of a connection. Connect and Accept fail with it; IDConfig documents how
// much they need. errors.Is: ENOMEM.
type ResourceError struct {
	Device      string
	What        string // of which there is not enough
	Need, Limit int    // of one connection, and of all together
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

// Flushed is the error of messages whose connection has ended.
func Flushed() error { return errFlushed }

// opError returns the error for an operation's status; nil for success.
func opError(status verbs.Status) error {
	switch status {
	case verbs.StatusSuccess:
		return nil
	case verbs.StatusRemAccess:
		return fmt.Errorf("%w (%w)", ErrRemoteAccess, unix.EACCES)
	}
	return sendError(status)
}

// sendError returns the error for a status other than success.
func sendError(status verbs.Status) error {
	if status == verbs.StatusFlushed {
		return Flushed()
	}
	return fmt.Errorf("%v: %w (%w)", status, ErrFlushed, unix.EIO)
}

// errNoRoom: the device has no room for a work request now. A plain ENOMEM means that memory to
// send from is missing.
var errNoRoom = fmt.Errorf("the device's send queue is full: %w", unix.ENOMEM)

// RetryAfter is after what time a posting is tried again if the device has no room, and nothing is
// in flight whose completion would show that it has.
const RetryAfter = 10 * time.Millisecond
