package uverbs

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// siwQueue is the common part of siw's work queues: a ring of n elements, where n is a power of
// two. An element whose flags are not zero belongs to the device.
type siwQueue struct {
	mem  []byte
	mask uint64
	puts uint64
	gone uint64 // the number of puts known to be taken
	head headFunc
}

// headFunc is the head of element i of a queue.
type headFunc func(mem []byte, i int) *atomic.Uint32

func newSiwQueue(mem []byte, n uint32, elem int, head headFunc) (siwQueue, error) {
	if n == 0 || n&(n-1) != 0 || uint64(n)*uint64(elem) > uint64(len(mem)) {
		return siwQueue{}, fmt.Errorf("a queue of %d elements of %d bytes in %d bytes: %w", n, elem, len(mem), unix.EIO)
	}
	return siwQueue{mem: mem, mask: uint64(n) - 1, head: head}, nil
}

// headAt returns the head of the n'th element that was ever put.
func (q *siwQueue) headAt(n uint64) *atomic.Uint32 { return q.head(q.mem, int(n&q.mask)) }

// isFull reports whether the queue is full, by the flags: the device zeroes nothing else.
func (q *siwQueue) isFull() bool { return loadAs[siwHead](q.headAt(q.puts)).Flags != 0 }

// Taken looks at the flags, which the device zeroes when it takes an element. If the element has
// been used again since, it was taken.
func (q *siwQueue) Taken(n uint64) bool {
	return n < q.puts && (q.puts-n > q.mask+1 || loadAs[siwHead](q.headAt(n)).Flags&siwValid == 0)
}

// Left relies on the device taking elements in order.
func (q *siwQueue) Left() int {
	for q.gone < q.puts && q.Taken(q.gone) {
		q.gone++
	}
	return int(q.puts - q.gone)
}

func (q *siwQueue) Close() error { return unmapOnce(&q.mem) }

func siwSQEHead(mem []byte, i int) *atomic.Uint32 {
	return atomicWord(&typedAt[siwSQE](mem, i*sizeOf[siwSQE]()).Head)
}

func siwRQEHead(mem []byte, i int) *atomic.Uint32 {
	return atomicWord(&typedAt[siwRQE](mem, i*sizeOf[siwRQE]()).Head)
}

// siwSends is a send queue.
type siwSends struct {
	siwQueue
	inPlace
}

var siwOpcodes = [...]uint8{verbs.Send: siwOpSend, verbs.Write: siwOpWrite, verbs.Read: siwOpRead}

func (q *siwSends) Put(cookie uint64, wr *verbs.SendWR, list []place, total uint32, reported bool) bool {
	if q.isFull() {
		return false
	}
	op := siwOpcodes[wr.Op]
	if wr.Op == verbs.Read && total == 0 {
		op = siwOpWrite // siw answers a Read of no bytes with as many bytes as it sent before
	}
	off := int(q.puts&q.mask) * sizeOf[siwSQE]()
	w := typedAt[siwSQE](q.mem, off)
	w.ID = cookie
	w.RKey, w.RAddr = wr.RKey, wr.RemoteAddr
	h := siwHead{Flags: siwValid, Opcode: op, NumSGE: uint8(len(list))}
	if reported {
		h.Flags |= siwSignalled
	}
	if wr.Flags&verbs.Solicited != 0 {
		h.Flags |= siwSolicited
	}
	w.SGE[0] = place{}
	copy(w.SGE[:], list)
	if n := len(wr.Inline); n > 0 {
		h.Flags |= siwInline
		h.NumSGE = 1
		w.SGE[0].Length = uint32(n)
		data := off + sizeOf[siwSQE]() - siwMaxInline
		copy(q.mem[data:data+siwMaxInline], wr.Inline)
	}
	storeAs(atomicWord(&w.Head), h)
	q.puts++
	return true
}

// siwRecvs is a receive queue.
type siwRecvs struct{ siwQueue }

func (q *siwRecvs) Put(cookie uint64, p place) bool {
	if q.isFull() {
		return false
	}
	w := typedAt[siwRQE](q.mem, int(q.puts&q.mask)*sizeOf[siwRQE]())
	w.ID = cookie
	w.SGE[0] = p
	storeAs(atomicWord(&w.Head), siwHead{Flags: siwValid, NumSGE: 1})
	q.puts++
	return true
}

// siwCompletions is a completion queue.
type siwCompletions struct {
	mem  []byte
	mask uint64
	gets uint64
	arm  *atomic.Uint32
}

func newSiwCompletions(mem []byte, n uint32) (*siwCompletions, error) {
	elems := uint64(n) * uint64(sizeOf[siwCQE]())
	if n == 0 || n&(n-1) != 0 || elems+uint64(sizeOf[siwCQCtrl]()) > uint64(len(mem)) {
		return nil, fmt.Errorf("a completion queue of %d in %d bytes: %w", n, len(mem), unix.EIO)
	}
	return &siwCompletions{mem: mem, mask: uint64(n) - 1, arm: atomicWord(&typedAt[siwCQCtrl](mem, int(elems)).Flags)}, nil
}

func (q *siwCompletions) nextCQE() *siwCQE {
	return typedAt[siwCQE](q.mem, int(q.gets&q.mask)*sizeOf[siwCQE]())
}

func (q *siwCompletions) Empty() bool {
	return loadAs[siwCQEHead](atomicWord(&q.nextCQE().Head)).Flags&siwValid == 0
}

func (q *siwCompletions) Take(c *cqe) bool {
	w := q.nextCQE()
	head := atomicWord(&w.Head)
	h := loadAs[siwCQEHead](head)
	if h.Flags&siwValid == 0 {
		return false
	}
	*c = cqe{Cookie: w.ID, QPN: uint32(w.QPID), Status: siwStatus(h.Status), Bytes: w.Bytes}
	head.Store(0) // it belongs to the device again
	q.gets++
	return true
}

func (q *siwCompletions) Close() error {
	q.arm = nil
	return unmapOnce(&q.mem)
}

// siwStatuses is enum siw_wc_status.
var siwStatuses = [...]verbs.Status{
	verbs.StatusSuccess, verbs.StatusLocLen, verbs.StatusLocProt, verbs.StatusLocQPOp, verbs.StatusFlushed,
	7 /* IBV_WC_BAD_RESP_ERR */, 8 /* IBV_WC_LOC_ACCESS_ERR */, verbs.StatusRemAccess, verbs.StatusRemInvReq, verbs.StatusGeneral,
}

func siwStatus(s uint16) verbs.Status {
	if int(s) >= len(siwStatuses) {
		return verbs.StatusGeneral
	}
	return siwStatuses[s]
}
