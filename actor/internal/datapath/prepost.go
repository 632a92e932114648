package datapath

import (
	"fmt"
	"slices"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

const (
	// When a message finds no receive, as many are posted as recvBatchBytes hold, but at least
	// recvBatch and at most recvBatchMax. One read of the socket brings many small messages, which
	// then seldom run out; of large ones the device does not get more memory than one read can
	// fill.
	recvBatch      = 4
	recvBatchMax   = 32
	recvBatchBytes = 32 << 10
	// srqDepth is the shared receive queue's length.
	srqDepth = 4096
)

// recvPool finds or makes the pool for messages of up to n bytes, header included, and counts one
// more connection for it, until removeConn.
func (dm *domain) recvPool(n int) (*recvPool, error) {
	n = poolSize(n)
	p := dm.recv[n]
	d := dm.d
	if most := d.l.RecvBudget.Most(); n > most {
		return nil, &ResourceError{Device: d.Verbs.Name(), What: "bytes for a receive", Need: n, Limit: most}
	}
	if p == nil {
		p = &recvPool{d: d, batch: min(max(recvBatch, recvBatchBytes/n), recvBatchMax)}
		p.Arena = memory.NewArena(d.Verbs, dm.pd, verbs.LocalWrite, n, dm.own, d.l.RecvBudget)
		p.copies = memory.NewCopies(d.l.RecvBudget)
		p.number = d.numberPool(p)
		dm.recv[n] = p
	}
	if d.attr.AsksForReceives && p.srq == nil {
		srq, err := d.Verbs.CreateSRQ(verbs.SRQInitAttr{PD: dm.pd, MaxWR: srqDepth, OnEmpty: p.refillQueue})
		if err != nil {
			return nil, fmt.Errorf("create_srq on %s: %w", d.Verbs.Name(), err)
		}
		p.srq = srq
	}
	p.conns++
	return p, nil
}

// poolSize returns the size of the receives for messages of up to n bytes, header included.
func poolSize(n int) int { return (n + 63) &^ 63 }

// removeConn ends the use by a connection. After the last one the posted receives are taken back,
// as others may want their memory.
func (p *recvPool) removeConn() {
	if p.conns--; p.conns == 0 {
		p.unpostAll()
	}
}

// unpostAll takes back the posted receives, which the device no longer uses.
func (p *recvPool) unpostAll() {
	if p.srq != nil {
		p.d.logCloseError("destroy_srq", p.srq.Close())
		p.srq = nil
	}
	for i, c := range p.posted {
		if c != nil {
			p.takePosted(uint32(i)).Free()
		}
	}
}

// numberPool assigns a number to a pool.
func (d *Device) numberPool(p *recvPool) uint32 {
	i := slices.Index(d.Recvs, nil)
	if i < 0 {
		i = len(d.Recvs)
		d.Recvs = append(d.Recvs, nil)
	}
	d.Recvs[i] = p
	return uint32(i)
}

// refillQueue posts receives because a message has come and there is none. Earlier messages were
// delivered before, so that many small messages from one read use a few buffers again and again,
// not one buffer each. If a turn's budget was not enough for all, the next turn feeds p. A
// connection that may not receive now is paused. When little memory is left, fewer receives, down
// to one, are posted at a time, so that no connection takes the receives of another.
func (p *recvPool) refillQueue(qp verbs.QP) {
	s := &p.d.l.Shares
	if p.d.ready {
		if !slices.Contains(s.starved, p) {
			s.starved = append(s.starved, p)
		}
		return
	}
	batch := max(1, min(p.batch, s.unreservedBytes()/(16*p.Arena.Size())))
	if c, ok := qpConn(qp); ok {
		if s.checkPosting(c, batch*p.Arena.Size()); c.In.paused {
			return
		}
	}
	for n := range batch {
		c, err := p.Arena.Get()
		if err != nil && n > 0 {
			return // fewer will do
		}
		if err != nil {
			s.noteStarved(p, err)
			return
		}
		if err := p.postReceive(p.srq, c); err != nil {
			c.Free()
			p.d.l.log.Warn("rdma: post_recv", "device", p.d.Verbs.Name(), "err", err)
			return
		}
	}
}

// postReceive posts a receive to a queue.
func (p *recvPool) postReceive(q interface{ PostRecv(verbs.RecvWR) error }, c *memory.Chunk) error {
	c.Check() // it is the device's now
	i := p.indexFor(c)
	err := q.PostRecv(verbs.RecvWR{ID: recvBit | uint64(p.number)<<32 | uint64(i), SGE: c.SGE})
	if err != nil {
		p.takePosted(i)
	}
	return err
}

func (p *recvPool) indexFor(c *memory.Chunk) (i uint32) {
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

// takePosted ends a receive.
func (p *recvPool) takePosted(i uint32) *memory.Chunk {
	c := p.posted[i]
	p.posted[i] = nil
	p.free = append(p.free, i)
	return c
}

// close leaves the memory of messages that owners have.
func (p *recvPool) close() {
	p.unpostAll()
	p.Arena.CloseUnused()
	p.d.Recvs[p.number] = nil
}

// On a device that does not ask for receives (verbs.DeviceAttr.AsksForReceives) every message must
// find one. On iWARP a message that does not ends its connection; on InfiniBand its sender tries
// again and again. So each connection has a private receive queue, which other connections'
// messages cannot use up. It has as many receives in it as the peer may send messages, from before
// the peer can send until the connection ends. When a message was consumed, its receive is posted
// again before the peer gets the credit.

// receiveCount returns how many receives a connection posts beforehand.
func (t *Terms) receiveCount() int {
	n := t.Credits
	if t.Mode == ModeMessages {
		n += wire.ControlReceives
	}
	if t.Features != 0 {
		n++ // a key update
	}
	if t.usesTLS() {
		n = max(n, secure.MaxTLSFlight+2) // frames, and the request and a probe behind them
	}
	return n
}

// usesTLS reports whether the connection is secured in TLS mode.
func (t *Terms) usesTLS() bool { return secure.Features(t.Features)&secure.FeatureTLS != 0 }

// postReceives posts n receives.
func (in *intake) postReceives(n int) error {
	if in.c.res.dom.own {
		in.pool.Arena.InOne(n) // one region
	}
	for range n {
		b, err := in.pool.Arena.Get()
		if err != nil {
			limit := in.c.l.RecvBudget.Most()
			return &ResourceError{Device: in.c.Device.Verbs.Name(), What: "bytes of receive buffers", Need: n * in.pool.Arena.Size(), Limit: limit, Err: err}
		}
		if err := in.postRecv(b); err != nil {
			return fmt.Errorf("post_recv on %s: %w", in.c.Device.Verbs.Name(), err)
		}
	}
	return nil
}
