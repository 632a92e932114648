package actor

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
)

// Why a Send failed; errors.Is finds them in *SendFailed.
var (
	// ErrQueueFull: the peer does not keep up, and the connection's queue, or its mailbox, has no
	// room. Wait for *Writable.
	ErrQueueFull = datapath.ErrQueueFull
	// ErrTooLarge: the message is larger than the peer takes (Established.MaxMessage).
	ErrTooLarge = datapath.ErrTooLarge
	// ErrFlushed: the connection ended first. Closed says how many may have arrived nevertheless.
	ErrFlushed = datapath.ErrFlushed
)

// ErrRemoteAccess is why an operation failed whose memory the peer's device refuses: never granted,
// revoked, of another connection, not with that right, or outside. The connection is over. iWARP
// says so in Disconnected.Err, where the operation itself is ErrFlushed, and a Write may have been
// Done.
var ErrRemoteAccess = datapath.ErrRemoteAccess

// ErrPeerLost is found (errors.Is) in the error of a connection that has ended without its peer's
// goodbye: the peer's process was killed, its machine or the network is gone, or its device gave
// the connection up.
var ErrPeerLost = datapath.ErrPeerLost

type (
	// LostError is why a connection ended that its peer has not ended: Disconnected.Err and
	// Closed.Err. Its field Err is what is known. errors.Is: ErrPeerLost, and an errno: ECONNRESET,
	// ETIMEDOUT when the peer was silent for too long, or the device's. Peers of version 2 say no
	// goodbye: theirs is no such end.
	LostError = datapath.LostError
	// QueuePairError is why a connection has ended whose queue pair has failed: the first work
	// request that completed with an error (fields Op and Status), or the device's own word (Status
	// is StatusSuccess); Err is what else is known, such as a stream's reset, or nil. errors.Is:
	// ErrRemoteAccess and EACCES for an access that the peer refuses, EMSGSIZE for a message that
	// is longer than our receive, ErrPeerLost and ETIMEDOUT for a peer that acknowledges nothing or
	// has no receives for too long, ErrPeerLost and EIO for one whose own queue pair has failed or
	// gone, EIO for everything else.
	QueuePairError = datapath.QueuePairError
	// ResourceError says that a device (field Device), or the half of Limits.ReceiveMemory, cannot
	// hold what a connection needs from its beginning: What is missing, Need for one connection,
	// Limit for all together. Connect and Accept fail with it; IDConfig says how much they
	// need. errors.Is: ENOMEM.
	ResourceError = datapath.ResourceError
)

// PanicError is why an identifier was closed whose actor has panicked, or what it has called of
// the user's: a Call's Fn, an Observer, a Send's Renew. It is what the command is answered with
// that has done so, too.
type PanicError struct{ Value any }

func (e *PanicError) Error() string {
	return fmt.Sprintf("the identifier's actor has panicked: %v", e.Value)
}

// ErrStopped is why an identifier was closed whose actor was stopped by somebody.
var ErrStopped = errors.New("the identifier's actor was stopped")

// ErrOwnerDied is why an identifier was closed whose owner has stopped.
var ErrOwnerDied = errors.New("the owner has stopped")
