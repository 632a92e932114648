package actor

import (
	"fmt"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// device is what a loop's connections over one device share: the completion queue, the receive buffers, the memory that sends are
// posted from, and the table of posted sends. Loop goroutine.
type device struct {
	l     *loop
	dev   verbs.Device
	cq    verbs.CQ
	wc    [64]verbs.WC // polled; those from next on are still to be handled
	next  int
	got   int
	ready bool    // there are more than a turn's budget: Run is queued
	due   []*conn // to be pumped
	recv  map[int]*recvPool
	recvs []*recvPool // by number
	send  [maxArenaShift - minArenaShift + 1]*arena
	wr    verbs.SendWR
	sgl   [1]verbs.SGE

	maxInline int // bytes that the device copies from the work request
}

// recvBit tells the ID of a receive from that of a send: the pool's number and the buffer's index are below it. A send's is its number
// in its connection's flight.
const recvBit = 1 << 63

const (
	minArenaShift = 8  // 256 bytes
	maxArenaShift = 27 // 128 MiB
	// cqEntries is what the completion queue is asked to hold.
	cqEntries = 16 << 10
)

// deviceOf finds or makes what the loop's connections share over dev.
func (l *loop) deviceOf(dev verbs.Device) (*device, error) {
	for _, d := range l.devices {
		if d.dev == dev {
			return d, nil
		}
	}
	d := &device{l: l, dev: dev, wr: verbs.SendWR{Op: verbs.Send}, recv: make(map[int]*recvPool), maxInline: dev.Attr().MaxInline}
	cq, err := dev.CreateCQ(cqEntries, d.notify)
	if err != nil {
		return nil, fmt.Errorf("create_cq on %s: %w", dev.Name(), err)
	}
	d.cq = cq
	l.devices = append(l.devices, d)
	return d, nil
}

// notify: there are completions. The device calls it when it is in the middle of nothing, so they are handled at once: another turn
// would cost another wait.
func (d *device) notify() {
	if !d.ready && d.Run(eventloop.RunBudget) {
		_ = d.l.el.Schedule(d) // refused after the loop's end only: nothing polls then
	}
}

// Run handles at most budget completions, and the rest in its turn.
func (d *device) Run(budget int) (more bool) {
	d.ready = d.poll(budget) >= budget
	return d.ready
}

// LoopName names the device in the loop's reports of stalls.
func (d *device) LoopName() string { return "completions of " + d.dev.Name() }

// poll handles completions until there are none or limit is reached. What a completion leads to may poll again (the end of a
// connection does): that one goes on where this one is.
func (d *device) poll(limit int) (n int) {
	for n < limit {
		if d.next == d.got {
			d.next, d.got = 0, d.cq.Poll(d.wc[:])
			if d.got == 0 {
				break
			}
		}
		wc := d.wc[d.next]
		d.wc[d.next] = verbs.WC{}
		d.next++
		n++
		d.complete(&wc)
	}
	for len(d.due) > 0 {
		last := len(d.due) - 1
		c := d.due[last]
		d.due[last], d.due = nil, d.due[:last]
		c.due = false
		c.pump()
	}
	return n
}

// pump has c's pump called when the completions at hand are handled: what they have made room for goes out as one run.
func (d *device) pump(c *conn) {
	if !c.due {
		c.due = true
		d.due = append(d.due, c)
	}
}

// drain handles every completion there is: before the end of a connection is told.
func (d *device) drain() {
	for d.poll(1<<20) > 0 {
	}
}

func (d *device) complete(wc *verbs.WC) {
	conn, _ := qpConn(wc.QP)
	if wc.ID&recvBit == 0 {
		if conn != nil {
			conn.completed(uint32(wc.ID), wc.Status)
		}
		return
	}
	pool := d.recvs[uint32(wc.ID>>32)&^(1<<31)]
	c := pool.take(uint32(wc.ID))
	if wc.Status != verbs.StatusSuccess || conn == nil {
		pool.arena.put(c)
		return
	}
	conn.receive(c, int(wc.Bytes))
}

// qpConn is the connection that a queue pair was made for.
func qpConn(qp verbs.QP) (c *conn, ok bool) {
	if qp == nil {
		return nil, false
	}
	c, ok = qp.Context().(*conn)
	return c, ok
}

// post posts a message: b begins with its header, if the mode has one. The device copies what is small enough; the rest is copied
// into its memory. A quiet one completes with the next that is not.
func (d *device) post(c *conn, s *Send, b []byte, quiet bool) error {
	op := posting{send: s}
	d.wr.Flags = verbs.Signaled
	if quiet {
		d.wr.Flags = 0
	}
	if len(b) <= d.maxInline {
		d.wr.Inline = b
	} else {
		a := d.sendArena(len(b))
		chunk, err := a.get()
		if err != nil {
			return err
		}
		copy(chunk.bytes(), b)
		op.chunk = chunk
		d.sgl[0] = chunk.sge
		d.sgl[0].Length = uint32(len(b))
		d.wr.SGL = d.sgl[:]
	}
	d.wr.ID = uint64(c.flight.push(op))
	err := c.qp.PostSend(&d.wr)
	d.wr.Inline, d.wr.SGL = nil, nil
	if err != nil {
		c.flight.unpush()
		if op.chunk != nil {
			op.chunk.arena.put(op.chunk)
		}
	}
	return err
}

func (d *device) sendArena(n int) *arena {
	class := sizeClass(n, minArenaShift)
	if d.send[class] == nil {
		d.send[class] = &arena{dev: d.dev, size: 1 << (class + minArenaShift), budget: &d.l.sendBudget}
	}
	return d.send[class]
}

// close frees everything; the queue pairs are gone.
func (d *device) close() {
	d.drain()
	for _, p := range d.recvs {
		p.close()
	}
	for _, a := range d.send {
		if a != nil {
			a.close()
		}
	}
	if err := d.cq.Close(); err != nil {
		d.l.rt.log.Error("rdma: destroy_cq", "device", d.dev.Name(), "err", err)
	}
}

// recvPool is the receive buffers for messages up to one size, posted to a shared receive queue. Nothing is posted until a message
// finds the queue empty: an idle connection costs no buffer.
type recvPool struct {
	d      *device
	number uint32
	srq    verbs.SRQ
	batch  int // receives posted at a time
	arena  *arena
	posted []*chunk // by index; nil: free
	free   []uint32
}

const (
	// recvBatch is how many receives are posted at least when a message finds none, and recvBatchMax at most: as many as
	// recvBatchBytes hold, so that small messages, of which one read brings many, need not ask for each few, and large ones do
	// not have the device keep memory that one read cannot fill.
	recvBatch      = 4
	recvBatchMax   = 32
	recvBatchBytes = 32 << 10
	// srqDepth is the shared receive queue's length.
	srqDepth = 4096
)

// recvPool finds or makes the pool for messages of up to n bytes, header included.
func (d *device) recvPool(n int) (*recvPool, error) {
	n = (n + 63) &^ 63
	if p := d.recv[n]; p != nil {
		return p, nil
	}
	p := &recvPool{d: d, number: uint32(len(d.recvs)), batch: min(max(recvBatch, recvBatchBytes/n), recvBatchMax)}
	p.arena = &arena{dev: d.dev, access: verbs.LocalWrite, size: n, budget: &d.l.recvBudget}
	srq, err := d.dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: srqDepth, OnEmpty: p.refill})
	if err != nil {
		return nil, fmt.Errorf("create_srq on %s: %w", d.dev.Name(), err)
	}
	p.srq = srq
	d.recv[n] = p
	d.recvs = append(d.recvs, p)
	return p, nil
}

// refill posts receives because a message has come and there is none. What came before it is received first, so that one read of
// many small messages needs a few buffers again and again, not one for each.
func (p *recvPool) refill() {
	p.d.drain()
	for n := range p.batch {
		c, err := p.arena.get()
		if err != nil && n > 0 {
			return // fewer will do
		}
		if err != nil {
			p.d.l.rt.log.Warn("rdma: no receive buffer", "device", p.d.dev.Name(), "err", err)
			return
		}
		i := p.index(c)
		if err := p.srq.PostRecv(verbs.RecvWR{ID: recvBit | uint64(p.number)<<32 | uint64(i), SGE: c.sge}); err != nil {
			p.arena.put(p.take(i))
			p.d.l.rt.log.Warn("rdma: post_recv", "device", p.d.dev.Name(), "err", err)
			return
		}
	}
}

func (p *recvPool) index(c *chunk) (i uint32) {
	if n := len(p.free); n > 0 {
		i = p.free[n-1]
		p.free = p.free[:n-1]
		p.posted[i] = c
	} else {
		i = uint32(len(p.posted))
		p.posted = append(p.posted, c)
	}
	return i
}

// take ends a receive.
func (p *recvPool) take(i uint32) *chunk {
	c := p.posted[i]
	p.posted[i] = nil
	p.free = append(p.free, i)
	return c
}

func (p *recvPool) close() {
	if err := p.srq.Close(); err != nil {
		p.d.l.rt.log.Error("rdma: destroy_srq", "device", p.d.dev.Name(), "err", err)
	}
	for i, c := range p.posted {
		if c != nil {
			p.arena.put(p.take(uint32(i)))
		}
	}
	p.arena.close()
}
