package core

// SetQueues changes Config.SendWRs, Config.RecvWRs and Config.SRQ: a responder learns them with its queue pair, after Init and before
// Accept. Work requests posted before stay.
func (c *Conn) SetQueues(sendWRs, recvWRs int, srq RecvSource) {
	c.cfg.SendWRs, c.cfg.RecvWRs, c.cfg.SRQ = sendWRs, recvWRs, srq
}

// TakeReceives moves the receives posted to from, none of which a message has begun to fill, to c: from one attempt to connect to the
// next, or to a Conn that is made only to be aborted. Legal in Upcalls.Rejected. c has none of its own.
func (c *Conn) TakeReceives(from *Conn) {
	c.rq, from.rq = from.rq, c.rq
}
