package actor

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// Why a Send failed; errors.Is finds them in *SendFailed.
var (
	// ErrQueueFull: the peer does not keep up, and the connection's queue, or its mailbox, has no
	// room. Wait for *Writable.
	ErrQueueFull = datapath.ErrQueueFull
	// ErrTooLarge: the message is larger than Established.MaxMessage. The text names the field that
	// sets that limit: the peer's IDConfig.MaxMessage, or one of this side.
	ErrTooLarge = datapath.ErrTooLarge
	// ErrFlushed: the connection ended first. Closed.Unknown includes it if it may have arrived.
	ErrFlushed = datapath.ErrFlushed
)

// ErrRemoteAccess is the error of an operation on memory to which the peer's device refuses access:
// it was never granted, or was revoked, is another connection's, is granted without that right, or
// the operation reaches outside of it. The connection is over. On iWARP the error is in
// Disconnected.Err: the operation itself fails with ErrFlushed, and a Write may be answered with
// WriteDone.
var ErrRemoteAccess = datapath.ErrRemoteAccess

// ErrPeerLost is found (errors.Is) in the error of a connection that has ended without its peer's
// goodbye: the peer's process was killed, its machine or the network is gone, or its device gave
// the connection up.
var ErrPeerLost = datapath.ErrPeerLost

type (
	// LostError is the cause in Disconnected.Err and Closed.Err if the peer has not ended the
	// connection. Its field Err has the details. errors.Is: ErrPeerLost, and an errno: ECONNRESET,
	// ETIMEDOUT when the peer was silent for too long, or the device's.
	LostError = datapath.LostError
	// QueuePairError is the cause if a connection's queue pair has failed: the first work request
	// that completed with an error (fields Op and Status), or the device's report (Status is
	// StatusSuccess); Err has further details, such as a stream's reset, or is nil. errors.Is:
	// ErrRemoteAccess and EACCES for an access that the peer refuses, EMSGSIZE for a message that
	// is longer than this side's receive, ErrPeerLost and ETIMEDOUT for a peer that acknowledges
	// nothing or has no receives for too long, ErrPeerLost and EIO for one whose own queue pair has
	// failed or gone, EIO for everything else.
	QueuePairError = datapath.QueuePairError
	// ResourceError reports that a device (field Device), or the half of Limits.ReceiveMemory,
	// cannot hold the resources that a connection needs from its beginning: What is missing, Need
	// for one connection, Limit for all together; Err is the cause, or nil. Connect and Accept fail
	// with it; IDConfig describes how much they need. errors.Is: ENOMEM.
	ResourceError = datapath.ResourceError
	// VersionError is found in the error of a Connect or Dial if one of the two sides no longer
	// speaks the other's version of the messages: Peer and Own are the versions of their hellos. A
	// listener refuses such a request itself (Refused.Foreign). errors.Is: EPROTONOSUPPORT.
	VersionError = wire.VersionError
)

// PanicError is the cause in Closed.Err after a panic in the identifier's actor, or in user code
// that the actor has called: a Call's Fn, a Send's Renew. It also answers the command that has
// panicked.
type PanicError struct{ Value any }

func (e *PanicError) Error() string {
	return fmt.Sprintf("the identifier's actor has panicked: %v", e.Value)
}

// ErrStopped is the cause in Closed.Err if the identifier's actor was stopped from elsewhere.
var ErrStopped = errors.New("the identifier's actor was stopped")

// ErrOwnerDied is the cause in Closed.Err if the identifier's owner has stopped.
var ErrOwnerDied = errors.New("the owner has stopped")

// opName returns a command's name for messages.
func opName(cmd Command) string {
	switch c := cmd.(type) {
	case interface{ name() string }: // a command of this package
		return c.name()
	case *cmid.GetAddrInfo:
		return "getaddrinfo"
	}
	return strings.TrimPrefix(cmd.Op().C(), "rdma_")
}

// rdmaName returns a type's name as applications write it.
func rdmaName(typ string) string {
	if pkg, name, _ := strings.Cut(typ, "."); pkg == "cmid" || pkg == "actor" {
		return "rdma." + name
	}
	return typ
}

// restoreCommand puts cmd, which the user has sent, into an answer in place of the command that was
// carried out for it, and sets advice that fits cmd.
func restoreCommand(ev Event, cmd Command) {
	switch e := ev.(type) {
	case *cmid.Done:
		e.Command = cmd
	case Failure:
		e.Base().Command = cmd
	}
	switch cmd.(type) {
	case *Dial, *Serve:
		if f, ok := ev.(*cmid.AddrError); ok && errors.Is(f, unix.ETIMEDOUT) {
			// ResolveAddr could be repeated, but this identifier is destroyed
			f.Remedy = "the neighbour does not answer; " + tryAgain
		}
	}
}

// tryAgain is the advice when the identifier is lost.
const tryAgain = "create a new identifier to try again"

// reportsHandshake reports whether cmd's answer contains the outcome of a handshake.
func reportsHandshake(cmd Command) bool {
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

// RemovedError is the cause in Closed.Err if the device is gone. Err is nil when the device was
// removed, otherwise it is the device's failure: see cmid.DeviceRemoval. errors.Is: ENODEV, and
// Err.
type RemovedError struct {
	Device string
	Err    error
}

func (e *RemovedError) Error() string {
	if e.Err != nil {
		return "the device " + e.Device + " is no longer usable: " + e.Err.Error()
	}
	return "the device " + e.Device + " is gone"
}

// Unwrap returns ENODEV, and the reason if there is one.
func (e *RemovedError) Unwrap() []error {
	if e.Err != nil {
		return []error{unix.ENODEV, e.Err}
	}
	return []error{unix.ENODEV}
}
