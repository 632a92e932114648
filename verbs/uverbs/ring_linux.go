package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// The queues that a device shares with the process, as both kinds of device have them. A cookie is
// what the kernel gives back for a work request; a place is what the memory of a scatter/gather
// element is to the device.

// place is one scatter/gather element.
type place struct {
	addr   uint64
	length uint32
	lkey   uint32
}

// sendRing is a send queue.
type sendRing interface {
	// put writes a work request. total is its bytes, reported whether its success is to be
	// reported. False when there is no room.
	put(cookie uint64, wr *verbs.SendWR, list []place, total uint32, reported bool) bool
	// taken reports whether the device has taken the work request that was the n'th put, of those
	// that are not known to be done.
	taken(n uint64) bool
	close() error
}

// recvRing is a receive queue.
type recvRing interface {
	// put writes a receive. False when there is no room.
	put(cookie uint64, p place) bool
	// left is how many the device has not yet taken.
	left() int
	close() error
}

// cqRing is a completion queue.
type cqRing interface {
	// take gives the oldest completion.
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

// recvCookie marks a receive's cookie.
const recvCookie = 1 << 63
