package uverbs

import "github.com/rdmactor/rdmactor/internal/hca"

// The queues of a device, from any library. A cookie identifies a work request in its completion.
type (
	place    = hca.Place
	cqe      = hca.CQE
	sendRing = hca.SendQueue
	recvRing = hca.RecvQueue
	cqRing   = hca.Completions
)

// inPlace is embedded in send queues in memory that is shared with the kernel, where posted sends
// already are.
type inPlace struct{}

// Drop does nothing: the kernel stops reading the queue.
func (inPlace) Drop() {}

// recvCookie is a bit that is set in the cookies of receives.
const recvCookie = 1 << 63
