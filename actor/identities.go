package actor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// The connections that listeners have are shared by the identities of their peers, on all loops:
//
//   - Floor: an identity that has none may have one. Of the limit, a sixteenth is kept for these.
//   - Share: one that has some may have more while these are no more than what is left for all
//     others, without the sixteenth.
//   - Bound: Limits.Connections, and what Security.Authorize says (PeerLimits).
//   - Excess: the peer is refused, and gets the reason, sealed.
//
// A peer of TLS mode that needs no certificate is nobody: it counts by its address.

// PeerLimits bound what the peers with one identity may have, all together. Fields that are not
// positive have their defaults.
//
// There are no limits here for what the hello has promised (IDConfig.MaxMessage, IDConfig.Credits):
// it is sent before it is known who the peer is. Listeners of their own have their own.
type PeerLimits struct {
	// Connections are how many they may have to this runtime's listeners at a time: as many as are
	// left for all others, of Limits.Connections. A larger number changes nothing.
	Connections int
	// Memory is how much of each loop's Limits.ReceiveMemory they may occupy, in bytes: any amount.
	// Each connection counts with the receives for all messages that it may send before the owner
	// consumes some (IDConfig.Credits, of 64 KiB or what MaxMessage is; on the kernel's devices of
	// 1 to 16 KiB, what they hold at present, and some more of them). When it has ended, it counts
	// with those that the owner retains. A further connection for which that is too much is
	// refused. What this leaves is for large messages, being read or retained: one that finds none
	// waits at its sender. One connection, and one large message, they may have in any case. What
	// Read and Write are done with (IDConfig.Memory) does not count.
	Memory int
	// ConnectRate is how many they may make in a second, and four times as many at once: any
	// number.
	ConnectRate int
	// DenyOneSided is what of Security.AllowOneSided they may not be granted.
	DenyOneSided Access
}

// ErrPeerLimits is in Rejected: the peer has reached what this side's identity may have of it
// (PeerLimits). errors.Is: EUSERS.
var ErrPeerLimits = fmt.Errorf("the limits of this identity are reached: %w", unix.EUSERS)
