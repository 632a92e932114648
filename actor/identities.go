package actor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// The connections of all listeners are shared by the identities of their peers, on all loops:
//
//   - Floor: an identity that has none may have one. A sixteenth of the limit is kept for these.
//   - Share: one that has some may have more, as long as they are no more than are left for all
//     others, without the sixteenth.
//   - Bound: Limits.Connections, and the limits that Security.Authorize sets (PeerLimits).
//   - Excess: the peer is refused, and gets the reason, sealed.
//
// A peer of TLS mode that needs no certificate has no identity: it is counted by its address.

// PeerLimits bound the resources of the peers with one identity, all together. Fields that are not
// positive have their defaults.
//
// There are no limits here for the promises of the hello (IDConfig.MaxMessage, IDConfig.Credits):
// it is sent before the peer is identified. Separate listeners can have different ones.
type PeerLimits struct {
	// Connections are how many they may have to this runtime's listeners at a time: as many as are
	// left for all others, of Limits.Connections. A larger number changes nothing.
	Connections int
	// Memory is how much of each loop's Limits.ReceiveMemory they may occupy, in bytes: any amount.
	// Each connection counts with the receives for all messages that it may send before the owner
	// consumes some (IDConfig.Credits, of 64 KiB or of MaxMessage; on the kernel's devices of 1 to
	// 16 KiB, as large as they are at present, and some more of them). When it has ended, it counts
	// with those that the owner retains. A further connection that would exceed the limit is
	// refused. The rest is for large messages, being read or retained: one for which there is no
	// memory waits at its sender. One connection, and one large message, they may have in any case.
	// Memory for Read and Write (IDConfig.Memory) does not count.
	Memory int
	// ConnectRate is how many they may make in a second, and four times as many in a burst: any
	// number.
	ConnectRate int
	// DenyOneSided are the rights in Security.AllowOneSided that they may not be granted.
	DenyOneSided Access
}

// ErrPeerLimits is the error in Rejected if this side's identity has reached the peer's limits for
// it (PeerLimits). errors.Is: EUSERS.
var ErrPeerLimits = fmt.Errorf("the limits of this identity are reached: %w", unix.EUSERS)
