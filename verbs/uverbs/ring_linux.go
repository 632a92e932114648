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

// recvCookie is a bit that is set in the cookies of receives.
const recvCookie = 1 << 63
