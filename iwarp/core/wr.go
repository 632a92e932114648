package core

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// send is a posted send work request.
type send struct {
	id         uint64
	start, end uint64 // stream offsets of its first byte and behind its last; end is right once staged == total and done
	raddr      uint64
	total      uint32 // payload bytes; a Read: bytes asked for
	staged     uint32 // of these, in FPDUs made so far; a Read: bytes that have come
	rkey       uint32
	op         verbs.Opcode
	flags      verbs.SendFlags
	begun      bool        // start is valid
	done       bool        // its last FPDU is staged
	answered   bool        // a Read whose data is here
	piece      int         // where the next FPDU's payload begins: the element of sgl ...
	pieceOff   uint32      // ... and the offset in it (in inline, if that is used)
	inline     []byte      // the slot's own memory
	sgl        []verbs.SGE // the slot's own memory
}

// sink is where the data of a Read goes: STag and TO, both 0 when there is none.
func (s *send) sink() (stag uint32, to uint64) {
	if s.total == 0 || len(s.sgl) == 0 {
		return 0, 0
	}
	e := &s.sgl[0]
	return e.MR.LKey, e.MR.Addr + uint64(e.Offset)
}

func badWR(format string, args ...any) error {
	return fmt.Errorf("iwarp: work request: "+format+": %w", append(args, unix.EINVAL)...)
}

// checkSGE says whether e lies inside its region, and that in pd or in shared, if there is one.
func checkSGE(e *verbs.SGE, pd, shared verbs.PD) error {
	if e.MR == nil {
		if e.Length == 0 {
			return nil
		}
		return badWR("%d bytes without a memory region", e.Length)
	}
	if e.MR.PD != pd && (shared == nil || e.MR.PD != shared) {
		return badWR("a memory region that is freed or of another protection domain")
	}
	size := uint64(len(e.MR.Bytes))
	if uint64(e.Offset) > size || uint64(e.Length) > size-uint64(e.Offset) {
		return badWR("bytes %d+%d outside a region of %d", e.Offset, e.Length, size)
	}
	return nil
}

// memory is the bytes of e, which has a region. They may end beyond what 32 bits can count.
func memory(e *verbs.SGE) []byte { return e.MR.Bytes[e.Offset:][:e.Length] }

// CheckRecv is EINVAL for a receive whose memory is not that of pd or shared (nil: none), or may not be written, or not large enough.
func CheckRecv(wr *verbs.RecvWR, pd, shared verbs.PD) error {
	if err := checkSGE(&wr.SGE, pd, shared); err != nil {
		return err
	}
	if wr.SGE.MR != nil && wr.SGE.MR.Access&verbs.LocalWrite == 0 {
		return badWR("receive into a region without local write")
	}
	return nil
}

// checkSend gives the payload bytes of wr.
func (c *Conn) checkSend(wr *verbs.SendWR) (uint32, error) {
	switch {
	case wr.Op == verbs.SendWithImm || wr.Op.Atomic():
		return 0, fmt.Errorf("iwarp: %v: %w", wr.Op, verbs.ErrNotSupported)
	case wr.Op > verbs.Read:
		return 0, badWR("opcode %d", wr.Op)
	case len(wr.Inline) > MaxInline:
		return 0, badWR("%d inline bytes, more than %d", len(wr.Inline), MaxInline)
	case len(wr.Inline) > 0 && len(wr.SGL) > 0:
		return 0, badWR("inline bytes and a scatter/gather list")
	case len(wr.SGL) > MaxSGE:
		return 0, badWR("%d scatter/gather elements, more than %d", len(wr.SGL), MaxSGE)
	}
	total := uint64(len(wr.Inline))
	for i := range wr.SGL {
		if err := checkSGE(&wr.SGL[i], c.cfg.PD, c.cfg.Regions.shared()); err != nil {
			return 0, err
		}
		total += uint64(wr.SGL[i].Length)
	}
	if total > math.MaxUint32 {
		return 0, badWR("message of %d bytes", total)
	}
	if wr.Op == verbs.Read {
		if err := c.checkRead(wr); err != nil {
			return 0, err
		}
	}
	return uint32(total), nil
}

// checkRead is what a Read needs besides.
func (c *Conn) checkRead(wr *verbs.SendWR) error {
	switch {
	case c.ord == 0:
		return badWR("Read on a connection whose peer serves none: see ConnParam.InitiatorDepth, and the peer's ResponderResources")
	case len(wr.Inline) > 0 || len(wr.SGL) > 1:
		return badWR("Read into %d scatter/gather elements and %d inline bytes, more than one element", len(wr.SGL), len(wr.Inline))
	case len(wr.SGL) == 1 && wr.SGL[0].MR != nil && wr.SGL[0].MR.Access&verbs.LocalWrite == 0:
		return badWR("Read into a region without local write")
	}
	return nil
}

// PostSend queues wr. EINVAL: not connected, over, or malformed; ENOMEM: Config.SendWRs are outstanding.
func (c *Conn) PostSend(wr *verbs.SendWR) error {
	if c.state != stAccepted && c.state != stOpen {
		return badWR("send while %s", c.state)
	}
	total, err := c.checkSend(wr)
	if err != nil {
		return err
	}
	s := c.sq.push(c.cfg.SendWRs)
	if s == nil {
		return fmt.Errorf("iwarp: %d sends outstanding: %w", c.sq.n, unix.ENOMEM)
	}
	*s = send{
		id: wr.ID, total: total, rkey: wr.RKey, raddr: wr.RemoteAddr, op: wr.Op, flags: wr.Flags,
		inline: append(s.inline[:0], wr.Inline...), sgl: append(s.sgl[:0], wr.SGL...),
	}
	return nil
}

// PostRecv queues wr; legal from Init on. EINVAL: over, malformed, or there is an SRQ; ENOMEM: Config.RecvWRs are outstanding.
func (c *Conn) PostRecv(wr verbs.RecvWR) error {
	if c.state == stEnded {
		return badWR("receive while %s", c.state)
	}
	if c.cfg.SRQ != nil {
		return badWR("receive posted to a queue pair with a shared receive queue")
	}
	if err := CheckRecv(&wr, c.cfg.PD, c.cfg.Regions.shared()); err != nil {
		return err
	}
	r := c.rq.push(c.cfg.RecvWRs)
	if r == nil {
		return fmt.Errorf("iwarp: %d receives outstanding: %w", c.rq.n, unix.ENOMEM)
	}
	*r = wr
	return nil
}

// recvReady is true if there is a receive for a message. Asking a shared queue may end the connection.
func (c *Conn) recvReady() bool {
	if c.cfg.SRQ != nil {
		return c.cfg.SRQ.Ready()
	}
	return c.rq.n > 0
}

// takeRecv is the receive for the message that now begins.
func (c *Conn) takeRecv() verbs.RecvWR {
	if c.cfg.SRQ != nil {
		return c.cfg.SRQ.Take()
	}
	return c.popRecv()
}

// popRecv takes the oldest receive off the connection's own queue.
func (c *Conn) popRecv() verbs.RecvWR {
	slot := c.rq.at(0)
	wr := *slot
	*slot = verbs.RecvWR{}
	c.rq.pop()
	return wr
}

// completeSend takes the oldest send off its queue and reports it.
func (c *Conn) completeSend(st verbs.Status) {
	s := c.sq.at(0)
	wc := CompletionEntry{ID: s.id, Op: s.op, Status: st}
	if st == verbs.StatusSuccess {
		wc.Bytes = s.total
	}
	quiet := st == verbs.StatusSuccess && s.flags&verbs.Signaled == 0
	clear(s.sgl) // the regions are the owner's again
	c.sq.pop()
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
		c.up.Complete(wc)
	}
}

// flushSends completes all sends; the Read that is being answered, if any, with read. An upcall cannot add to them: the state
// forbids it.
func (c *Conn) flushSends(read verbs.Status) {
	answering := -1
	if c.tx.readsOut > 0 && !c.rx.rtrOut {
		answering = c.tx.oldRead
	}
	for i := 0; c.sq.n > 0; i++ {
		st := verbs.StatusFlushed
		if i == answering {
			st = read
		}
		c.completeSend(st)
	}
	c.tx.readsOut = 0
}

// flush completes every work request: the receive in use and the Read being answered as h says, the others as flushed.
func (c *Conn) flush(h hits) {
	if c.rx.taken {
		c.rx.taken = false
		c.completeRecv(h.recv)
	}
	for c.rq.n > 0 {
		wr := c.popRecv()
		c.up.Complete(CompletionEntry{ID: wr.ID, Op: verbs.Recv, Status: verbs.StatusFlushed, Recv: true})
	}
	c.flushSends(h.read)
}

// completeRecv reports the receive in use, as failed.
func (c *Conn) completeRecv(st verbs.Status) {
	id := c.rx.recv.ID
	c.rx.recv = verbs.RecvWR{}
	c.up.Complete(CompletionEntry{ID: id, Op: verbs.Recv, Status: st, Recv: true})
}
