package uverbs

import "github.com/rdmactor/rdmactor/internal/hca"

// The queues of a device, whoever makes them. A cookie identifies a work request in its completion.
type (
	place    = hca.Place
	cqe      = hca.CQE
	sendRing = hca.SendQueue
	recvRing = hca.RecvQueue
	cqRing   = hca.Completions
)

// inPlace is the part of a send queue in memory that is shared with the kernel: what was put is
// there.
type inPlace struct{}

// Drop does nothing: the kernel stops by itself to look there.
func (inPlace) Drop() {}

// recvCookie is a bit that is set in the cookies of receives.
const recvCookie = 1 << 63
