package actor

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
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

// ErrRemoteAccess is why an operation failed whose memory the peer's device refuses: it was never
// granted, or was revoked, is another connection's, is granted without that right, or the
// operation reaches outside of it. The connection is over. On iWARP the error is in
// Disconnected.Err: the operation itself fails with ErrFlushed, and a Write may be answered with
// WriteDone.
var ErrRemoteAccess = datapath.ErrRemoteAccess

// ErrPeerLost is found (errors.Is) in the error of a connection that has ended without its peer's
// goodbye: the peer's process was killed, its machine or the network is gone, or its device gave
// the connection up.
var ErrPeerLost = datapath.ErrPeerLost

type (
	// LostError is why a connection ended that its peer has not ended: Disconnected.Err and
	// Closed.Err. Its field Err is what is known. errors.Is: ErrPeerLost, and an errno:
	// ECONNRESET, ETIMEDOUT when the peer was silent for too long, or the device's. Peers of
	// version 2 say no goodbye, so the lack of theirs is no LostError.
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

// PanicError is why an identifier was closed after a panic in its actor, or in code of the user's
// that the actor has called: a Call's Fn, a Send's Renew. It also answers the command
// that has panicked.
type PanicError struct{ Value any }

func (e *PanicError) Error() string {
	return fmt.Sprintf("the identifier's actor has panicked: %v", e.Value)
}

// ErrStopped is why an identifier was closed whose actor was stopped by somebody.
var ErrStopped = errors.New("the identifier's actor was stopped")

// ErrOwnerDied is why an identifier was closed whose owner has stopped.
var ErrOwnerDied = errors.New("the owner has stopped")

// opName is a command's name in messages.
func opName(cmd Command) string {
	switch c := cmd.(type) {
	case interface{ name() string }: // one of ours
		return c.name()
	case *cmid.GetAddrInfo:
		return "getaddrinfo"
	}
	return strings.TrimPrefix(cmd.Op().C(), "rdma_")
}

// rdmaName is a type's name as applications spell it.
func rdmaName(typ string) string {
	if pkg, name, _ := strings.Cut(typ, "."); pkg == "cmid" || pkg == "actor" {
		return "rdma." + name
	}
	return typ
}

// restore puts into an answer the command that the user has sent, in place of the one that was
// carried out for it, and advice that fits it.
func restore(ev Event, cmd Command) {
	switch e := ev.(type) {
	case *cmid.Done:
		e.Command = cmd
	case Failure:
		e.Base().Command = cmd
	}
	switch cmd.(type) {
	case *Dial, *Serve:
		if f, ok := ev.(*cmid.AddrError); ok && errors.Is(f, unix.ETIMEDOUT) {
			// ResolveAddr could be repeated: this identifier goes
			f.Remedy = "the neighbour does not answer; " + tryAgain
		}
	}
}

// tryAgain is the advice when the identifier is lost.
const tryAgain = "create a new identifier to try again"

// shakes reports whether cmd's answer says what has become of a handshake.
func shakes(cmd Command) bool {
	switch cmd.(type) {
	case *Dial, *cmid.Connect:
		return true
	}
	return false
}

func isHandshake(err error) bool {
	_, ok := errors.AsType[*HandshakeError](err)
	return ok
}

func errnoOf(err error) int32 {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return int32(errno)
	}
	return 0
}
