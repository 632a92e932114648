package core

import "github.com/rdmactor/rdmactor/verbs"

// Queues is what a queue pair brings to its connection. The zero value has room for nothing.
type Queues struct {
	// SendWRs and RecvWRs bound the work requests outstanding per queue. The rings grow on demand.
	SendWRs, RecvWRs int
	// SRQ, if not nil, is asked for a receive when the first segment of a message arrives; PostRecv is then EINVAL.
	SRQ RecvSource
	// PD is the protection domain: every region that a work request or the peer names must be in it, Regions.Shared excepted. nil, for tests of what has
	// no memory, is the domain of regions with a nil PD.
	PD verbs.PD
	// Regions is the memory that the peer can name; nil: none.
	Regions *Regions
}

// RecvSource is a shared receive queue as a connection sees it.
type RecvSource interface {
	// Ready is true if there is a receive. It may have the owner post one, who may end the connection instead.
	Ready() bool
	// Take removes the oldest receive, which CheckRecv has found right. There is one: Ready was true.
	Take() verbs.RecvWR
	// Waits is true if a message that finds no receive is to wait for one (Conn.Waiting). Otherwise
	// it ends its connection.
	Waits() bool
}

// SetQueues changes Config.Queues: a responder learns them with its queue pair, after Init and before Accept. Work requests posted
// before stay.
func (c *Conn) SetQueues(q Queues) { c.cfg.Queues = q }

// TakeReceives moves the receives posted to from, none of which a message has begun to fill, to c: from one attempt to connect to the
// next, or to a Conn that is made only to be aborted. Legal in Upcalls.Rejected. c has none of its own.
func (c *Conn) TakeReceives(from *Conn) {
	c.rq, from.rq = from.rq, c.rq
}
