package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// This file has the interfaces of the queues that a device shares with the process. Both kinds of
// device implement them. A cookie identifies a work request in its completion. A place describes
// the memory of a scatter/gather element to the device.

// place is one scatter/gather element.
type place struct {
	addr   uint64
	length uint32
	lkey   uint32
}

// sendRing is a send queue.
type sendRing interface {
	// put writes a work request of total bytes. reported asks the device to report its success. The
	// result is false if there is no room.
	put(cookie uint64, wr *verbs.SendWR, list []place, total uint32, reported bool) bool
	// taken reports whether the device has taken the n'th work request that was put. It may be
	// asked only of work requests that are not known to be done.
	taken(n uint64) bool
	close() error
}

// recvRing is a receive queue.
type recvRing interface {
	// put writes a receive. The result is false if there is no room.
	put(cookie uint64, p place) bool
	// left returns how many receives the device has not taken yet.
	left() int
	close() error
}

// cqRing is a completion queue.
type cqRing interface {
	// take removes the oldest completion. The result is false if there is none.
	take(c *cqe) bool
	empty() bool
	close() error
}

// cqe is a completion as the kernel reports it. Its other fields are valid only with StatusSuccess.
type cqe struct {
	cookie uint64
	qpn    uint32
	status verbs.Status
	bytes  uint32
	imm    uint32
	srcQPN uint32
	hasImm bool
	grh    bool
}

// recvCookie is a bit that is set in the cookies of receives.
const recvCookie = 1 << 63
