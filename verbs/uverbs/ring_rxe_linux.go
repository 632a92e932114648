package uverbs

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// rxeQueue is the part that rxe's queues have in common: a header with two indices, and elements.
// Each side owns one index.
type rxeQueue struct {
	mem   []byte
	shift uint
	mask  uint32
	mine  uint32 // this side's index
	own   *atomic.Uint32
	peer  *atomic.Uint32
}

// newRxeQueue makes a queue of mem, whose elements have at least elem bytes. The producer is this
// side or the kernel. The error is EIO if mem is not such a queue.
func newRxeQueue(mem []byte, elem int, producer bool) (rxeQueue, error) {
	data := sizeOf[rxeQueueBuf]()
	if len(mem) < data {
		return rxeQueue{}, fmt.Errorf("a queue of %d bytes: %w", len(mem), unix.EIO)
	}
	h := typedAt[rxeQueueBuf](mem, 0)
	q := rxeQueue{mem: mem, shift: uint(h.Log2ElemSize), mask: h.IndexMask, own: atomicWord(&h.ConsumerIndex), peer: atomicWord(&h.ProducerIndex)}
	if producer {
		q.own, q.peer = q.peer, q.own
	}
	n := uint64(q.mask) + 1
	if q.shift > 16 || 1<<q.shift < elem || n&(n-1) != 0 || n<<q.shift > uint64(len(mem)-data) {
		return rxeQueue{}, fmt.Errorf("a queue of %d elements of 2^%d bytes, for elements of %d, in %d bytes: %w", n, q.shift, elem, len(mem), unix.EIO)
	}
	q.mine = q.own.Load() & q.mask
	return q, nil
}

// elementOffset returns the offset of the element at this side's index. The other side's index is
// never used as an offset.
func (q *rxeQueue) elementOffset() int { return sizeOf[rxeQueueBuf]() + int(q.mine)<<q.shift }

// isFull reports whether the queue is full. One element stays unused, to distinguish a full queue
// from an empty one.
func (q *rxeQueue) isFull() bool { return (q.mine+1-q.peer.Load())&q.mask == 0 }

func (q *rxeQueue) Empty() bool { return (q.peer.Load()-q.mine)&q.mask == 0 }

// advance passes the element at mine to the other side.
func (q *rxeQueue) advance() {
	q.mine = (q.mine + 1) & q.mask
	q.own.Store(q.mine)
}

func (q *rxeQueue) Close() error {
	q.own, q.peer = nil, nil
	return unmapOnce(&q.mem)
}

// rxeSends is a send queue.
type rxeSends struct {
	rxeQueue
	inPlace
	maxInline int
	ud        bool
	puts      uint64
	ssn       uint32
}

func (q *rxeSends) Put(cookie uint64, wr *verbs.SendWR, list []place, total uint32, reported bool) bool {
	if q.isFull() {
		return false
	}
	off := q.elementOffset()
	w := typedAt[rxeSendWQE](q.mem, off)
	*w = rxeSendWQE{}
	w.WR.WRID = cookie
	w.WR.Opcode = hca.OpcodeOf(wr.Op)
	w.WR.SendFlags = hca.SendFlagsOf(wr, reported)
	binary.BigEndian.PutUint32(w.WR.Ex[:], wr.Imm)
	switch {
	case q.ud:
		ah, _ := wr.AH.(*addressHandle)
		*unionOf[rxeUD](&w.WR.WR) = rxeUD{RemoteQPN: wr.RemoteQPN, RemoteQKey: wr.RemoteQKey, AHNum: ah.Num}
	case wr.Op.Writes() || wr.Op == verbs.Read:
		*unionOf[hca.RDMAWR](&w.WR.WR) = hca.RDMAWR{RemoteAddr: wr.RemoteAddr, RKey: wr.RKey}
		w.IOVA = wr.RemoteAddr
	case wr.Op.Atomic():
		*unionOf[hca.AtomicWR](&w.WR.WR) = hca.AtomicWR{RemoteAddr: wr.RemoteAddr, CompareAdd: wr.CompareAdd, Swap: wr.Swap, RKey: wr.RKey}
		w.IOVA = wr.RemoteAddr
	}
	q.ssn++
	w.SSN = q.ssn
	w.DMA.Length, w.DMA.Resid = total, total
	data := off + sizeOf[rxeSendWQE]()
	if len(wr.Inline) > 0 {
		copy(q.mem[data:data+q.maxInline], wr.Inline)
	} else {
		w.DMA.NumSGE = uint32(len(list))
		for i := range list {
			*typedAt[place](q.mem, data+i*sizeOf[place]()) = list[i]
		}
	}
	q.puts++
	q.advance()
	return true
}

// Taken uses the device's index, which advances when a work request is done.
func (q *rxeSends) Taken(n uint64) bool {
	pending := uint64((q.mine - q.peer.Load()) & q.mask)
	return n+pending < q.puts
}

// rxeRecvs is a receive queue.
type rxeRecvs struct{ rxeQueue }

func (q *rxeRecvs) Put(cookie uint64, p place) bool {
	if q.isFull() {
		return false
	}
	*typedAt[rxeRecvWQE](q.mem, q.elementOffset()) = rxeRecvWQE{
		WRID: cookie,
		DMA:  rxeDMAInfo{Length: p.Length, Resid: p.Length, NumSGE: 1},
		SGE:  p,
	}
	q.advance()
	return true
}

func (q *rxeRecvs) Left() int { return int((q.mine - q.peer.Load()) & q.mask) }

// rxeCompletions is a completion queue.
type rxeCompletions struct{ rxeQueue }

func (q *rxeCompletions) Take(c *cqe) bool {
	if q.Empty() {
		return false
	}
	w := typedAt[hca.WC](q.mem, q.elementOffset())
	*c = cqe{Cookie: w.WRID, QPN: w.QPNum, Status: hca.StatusOf(w.Status), Bytes: w.ByteLen, SrcQPN: w.SrcQP, GRH: w.WCFlags&hca.WCGRH != 0}
	if w.WCFlags&hca.WCWithImm != 0 {
		c.HasImm, c.Imm = true, binary.BigEndian.Uint32(w.Ex[:])
	}
	c.Write = c.Status == verbs.StatusSuccess && w.Opcode == hca.WCRecvWrite
	q.advance()
	return true
}
