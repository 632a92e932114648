package core

import "github.com/rdmactor/rdmactor/verbs"

// recvReady reports whether there is a receive for a message.
func (c *Conn) recvReady() bool {
	if c.cfg.SRQ != nil {
		return c.cfg.SRQ.HasRecv()
	}
	return c.rq != nil && c.rq.Len() > 0
}

// takeRecv returns the receive for the message that now begins.
func (c *Conn) takeRecv() verbs.RecvWR {
	if c.cfg.SRQ != nil {
		return c.cfg.SRQ.TakeRecv()
	}
	return c.rq.Pop()
}

// completeSends completes finished work requests, in posting order: Sends and Writes when the
// socket took them, Reads when their data is here.
func (c *Conn) completeSends() {
	for c.sq.Len() > 0 {
		s := c.sq.At(0)
		if !s.done || s.end > c.tx.sent || s.op == verbs.Read && !s.answered {
			return
		}
		c.completeSend(verbs.StatusSuccess)
	}
}

// completeSend takes the oldest send off its queue and reports it.
func (c *Conn) completeSend(st verbs.Status) {
	s := c.sq.At(0)
	wc := verbs.WC{ID: s.id, Op: s.op, Status: st}
	if st == verbs.StatusSuccess {
		wc.Bytes = s.total
	}
	quiet := st == verbs.StatusSuccess && s.flags&verbs.Signaled == 0
	clear(s.sgl) // the regions are the owner's again
	c.sq.Drop()
	if c.tx.next > 0 {
		c.tx.next--
	}
	if c.tx.keep > 0 {
		c.tx.keep--
	}
	if c.tx.oldRead > 0 {
		c.tx.oldRead--
	}
	if !quiet {
		c.up.Complete(wc, false)
	}
}

// flushSends completes all sends; the Read that is being answered, if any, with read. An upcall
// cannot add to them: the state forbids it.
func (c *Conn) flushSends(read verbs.Status) {
	answering := -1
	if c.tx.readsOut > 0 && !c.rx.rtrOut {
		answering = c.tx.oldRead
	}
	for i := 0; c.sq.Len() > 0; i++ {
		st := verbs.StatusFlushed
		if i == answering {
			st = read
		}
		c.completeSend(st)
	}
	c.tx.readsOut = 0
}

// flushQueues completes every work request: the receive in use and the Read being answered with the
// statuses of h, the others as flushed.
func (c *Conn) flushQueues(h hits) {
	if c.rx.taken {
		c.rx.taken = false
		c.failRecv(h.recv)
	}
	for c.rq != nil && c.rq.Len() > 0 {
		wr := c.rq.Pop()
		c.up.Complete(verbs.WC{ID: wr.ID, Op: verbs.Recv, Status: verbs.StatusFlushed}, false)
	}
	c.flushSends(h.read)
}

// failRecv reports the receive in use as failed.
func (c *Conn) failRecv(st verbs.Status) {
	id := c.rx.recv.ID
	c.rx.recv = verbs.RecvWR{}
	c.up.Complete(verbs.WC{ID: id, Op: verbs.Recv, Status: st}, false)
}
