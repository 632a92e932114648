package datapath

import (
	"fmt"
	"math"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// cqEntries is the requested size of a completion queue, if the device has so many entries and no
// connection needs more.
const cqEntries = 16 << 10

// queueWithRoom finds or makes a queue with room for n more entries, and takes them.
func (d *Device) queueWithRoom(n int) (*completions, error) {
	for _, q := range d.Queues {
		if q.Room >= n {
			q.Room -= n
			return q, nil
		}
	}
	limit := d.attr.MaxCQE
	if limit > 0 && n > limit {
		return nil, &ResourceError{Device: d.Verbs.Name(), What: "completions", Need: n, Limit: limit}
	}
	entries := max(cqEntries, n)
	q := &completions{Room: math.MaxInt} // it grows
	if limit > 0 {
		entries = min(entries, limit)
		q.Room = entries
	}
	cq, err := d.Verbs.CreateCQ(entries, d.handleNotify)
	if err != nil {
		return nil, fmt.Errorf("create_cq on %s: %w", d.Verbs.Name(), err)
	}
	q.cq = cq
	q.Room -= n
	d.Queues = append(d.Queues, q)
	return q, nil
}

// handleNotify handles the device's notification that there are completions. They are handled
// immediately: another turn would cost another wait.
func (d *Device) handleNotify() {
	if !d.ready && d.Run(eventloop.RunBudget) {
		_ = d.l.el.Schedule(d) // refused after the loop's end only: nothing polls then
	}
}

// Run handles at most budget completions, and leaves the rest for another turn.
func (d *Device) Run(budget int) (more bool) {
	if d.ready = d.pollCompletions(budget) >= budget; !d.ready {
		d.l.Shares.scheduleResume() // see refillQueue: messages may have found d.ready
	}
	return d.ready
}

// LoopName names the device in the loop's reports of stalls.
func (d *Device) LoopName() string { return "completions of " + d.Verbs.Name() }

// pollCompletions handles completions until there are none or limit is reached. Handling one may
// call it again, as the end of a connection does: the inner call continues with the next
// completion.
func (d *Device) pollCompletions(limit int) (n int) {
	for n < limit {
		if d.unbundling.chunk != nil {
			n += d.unbundleNext()
			continue
		}
		if d.next == d.got {
			d.next, d.got = 0, d.fetchCompletions()
			if d.got == 0 {
				break
			}
		}
		wc := d.wc[d.next]
		d.wc[d.next] = verbs.WC{}
		d.next++
		n++
		d.handleCompletion(&wc)
	}
	for len(d.due) > 0 {
		last := len(d.due) - 1
		c := d.due[last]
		d.due[last], d.due = nil, d.due[:last]
		c.Out.queue.due = false
		c.Pump()
	}
	return n
}

// fetchCompletions polls the queues in turn until one has something, or all have nothing.
func (d *Device) fetchCompletions() (n int) {
	for range d.Queues {
		if d.at >= len(d.Queues) {
			d.at = 0
		}
		if n = d.Queues[d.at].cq.Poll(d.wc[:]); n > 0 {
			return n
		}
		d.at++
	}
	return 0
}

// Drain handles every completion there is, before the end of a connection is reported.
func (d *Device) Drain() {
	for d.pollCompletions(1<<20) > 0 {
	}
}

func (d *Device) handleCompletion(wc *verbs.WC) {
	conn, _ := qpConn(wc.QP)
	if wc.ID&recvBit == 0 {
		if conn != nil {
			conn.Completed(uint32(wc.ID), wc.Status)
			if wc.Status != verbs.StatusSuccess {
				conn.queuePairFailed(&QueuePairError{Op: wc.Op, Status: wc.Status})
			}
		}
		return
	}
	pool := d.Recvs[uint32(wc.ID>>32)&^(1<<31)]
	c := pool.takePosted(uint32(wc.ID))
	if wc.Status != verbs.StatusSuccess || conn == nil {
		c.Free()
		d.l.Shares.scheduleResume()
		if conn != nil {
			conn.queuePairFailed(&QueuePairError{Op: verbs.Recv, Status: wc.Status})
		}
		return
	}
	if wc.Op == verbs.RecvWrite {
		conn.In.handleWritten(c, wc.Bytes, wc.Imm)
		return
	}
	conn.Receive(c, int(wc.Bytes))
}

// Completed ends the posting of that number, and the earlier ones, which have succeeded without a
// completion.
func (c *Conn) Completed(number uint32, status verbs.Status) {
	var free outgoingChain
	for {
		p, ok := c.Out.Flight.pop(number)
		if !ok {
			break
		}
		if p.chunk != nil {
			p.chunk.Free()
		}
		switch {
		case p.op != nil:
			c.In.countFetching(p.op, -1)
			if status == verbs.StatusSuccess {
				c.traffic.operationSucceeded(p.op)
			}
			p.op.Issuer.Ended(c, p.op, opError(status))
		case p.Send == nil:
		case status == verbs.StatusSuccess || c.Out.Flight.head != number+1:
			c.Out.answerSent(p.Send, &free)
		default:
			c.Out.failSends(p.Send, sendError(status))
		}
	}
	free.returnToPool()
	c.Sec.payOwed()
	c.goodbyeResume()
	c.Device.queuePump(c)
}

// answerSent answers a chain of messages that were sent, and adds them to free.
func (out *sending) answerSent(first *Outgoing, free *outgoingChain) {
	for first != nil {
		s := first
		first = s.next
		if s.notify {
			out.c.identifier.Sent(s)
		}
		free.add(s)
	}
}
