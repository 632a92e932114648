//go:build amd64 || arm64

package native

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

const (
	// maxSGE and maxInline bound one send, even if the device could take more.
	maxSGE    = 16
	maxInline = 256
	// slots is the number of sends that are collected before they are posted. In any case they are
	// posted at the end of the loop's turn.
	slots = 64
)

// slot is the memory of one send until it is posted. Then the library copies it.
type slot struct {
	wr     sendWR
	list   [maxSGE]hca.Place
	inline [maxInline]byte
}

// staging collects the sends of all queue pairs of an adapter, which are posted in one call for
// each queue pair.
type staging struct {
	mem    []byte
	free   []uint16
	queues []*sendQueue // those with sends in slots
}

func newStaging() (staging, error) {
	mem, err := mapMemory(slots * sizeOf[slot]())
	if err != nil {
		return staging{}, err
	}
	s := staging{mem: mem, free: make([]uint16, slots)}
	for i := range s.free {
		s.free[i] = uint16(i)
	}
	return s, nil
}

func (s *staging) release() { unmapOnce(&s.mem) }

func (s *staging) slotAt(i uint16) *slot { return typedAt[slot](s.mem, int(i)*sizeOf[slot]()) }

// sendQueue is a hca.SendQueue.
type sendQueue struct {
	a      *adapter
	qp     uintptr
	num    uint32
	ud     bool
	cq     *completions
	chain  []uint16 // slots, in order
	failed error    // the library's error, until Announce returns it
	again  bool     // the kernel has not processed the posted sends
}

// Put writes a send into a slot.
func (q *sendQueue) Put(cookie uint64, wr *verbs.SendWR, list []hca.Place, total uint32, reported bool) bool {
	s := &q.a.sends
	if len(s.free) == 0 {
		s.postAll(q.a)
	}
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	x := s.slotAt(i)
	x.wr = sendWR{WRID: cookie, Opcode: hca.OpcodeOf(wr.Op), SendFlags: hca.SendFlagsOf(wr, reported)}
	binary.BigEndian.PutUint32(x.wr.Imm[:], wr.Imm)
	if q.a.caps.Siw && wr.Op == verbs.Read && total == 0 {
		// siw answers a Read of no bytes with as many bytes as it sent before
		x.wr.Opcode = hca.WRWrite
	}
	if len(wr.Inline) > 0 {
		copy(x.inline[:], wr.Inline)
		x.list[0] = hca.Place{Addr: uint64(addressOf(x.inline[:])), Length: uint32(len(wr.Inline))}
		x.wr.NumSGE = 1
	} else {
		x.wr.NumSGE = int32(copy(x.list[:], list))
	}
	x.wr.SGList = addressIn(&x.list)
	switch {
	case q.ud:
		*typedAt[udWR](x.wr.WR[:], 0) = udWR{AH: q.a.ahOf(wr.AH), RemoteQPN: wr.RemoteQPN, RemoteQKey: wr.RemoteQKey}
	case wr.Op.Writes() || wr.Op == verbs.Read:
		*typedAt[hca.RDMAWR](x.wr.WR[:], 0) = hca.RDMAWR{RemoteAddr: wr.RemoteAddr, RKey: wr.RKey}
	case wr.Op.Atomic():
		*typedAt[hca.AtomicWR](x.wr.WR[:], 0) = hca.AtomicWR{RemoteAddr: wr.RemoteAddr, CompareAdd: wr.CompareAdd, Swap: wr.Swap, RKey: wr.RKey}
	}
	if n := len(q.chain); n > 0 {
		s.slotAt(q.chain[n-1]).wr.Next = addressIn(x)
	} else {
		s.queues = append(s.queues, q)
	}
	q.chain = append(q.chain, i)
	return true
}

// postAll posts all collected sends: one call for each queue, and one crossing for many.
func (s *staging) postAll(a *adapter) {
	for len(s.queues) > 0 {
		n := min(len(s.queues), maxCalls)
		if a.caps.Siw { // its driver sets errno, of which a crossing has one
			n = 1
		}
		s.postFirst(a, n)
		s.queues = slices.Delete(s.queues, 0, n)
	}
}

// postFirst posts the sends of the first n queues.
func (s *staging) postFirst(a *adapter, n int) {
	p := a.page
	bad, at := scratchVar[[maxCalls]uint64](p, 0)
	*bad = [maxCalls]uint64{}
	fn := peek[uintptr](a.ctx, contextPostSend)
	for i, q := range s.queues[:n] {
		p.calls[i] = cCall{fn: fn, args: [6]uintptr{q.qp, uintptr(addressIn(s.slotAt(q.chain[0]))), at + uintptr(8*i)}}
	}
	a.crossAnd(n)
	for i, q := range s.queues[:n] {
		if err := q.releasePosted(errnoOf(p.calls[i].ret, unix.Errno(p.errno)), bad[i]); q.failed == nil {
			q.failed = err
		}
	}
}

// releasePosted frees the slots of posted sends. err and bad are the library's answer.
func (q *sendQueue) releasePosted(err error, bad uint64) error {
	// soft-iWARP's driver has queued the sends, and the kernel could not process them
	q.again = q.a.caps.Siw && errors.Is(err, unix.ENOTCONN)
	switch {
	case err == nil, q.again, errors.Is(err, unix.EIO), errors.Is(err, unix.ENODEV):
	case errors.Is(err, unix.EACCES) && !uverbs.Allowed(q.a.cmdFD()): // the driver writes a command
		err = &verbs.CredentialsError{File: filepath.Base(deviceFile(q.a.name)), Err: unix.EACCES}
	default:
		err = q.completeRefused(bad)
	}
	s := &q.a.sends
	s.free = append(s.free, q.chain...)
	q.chain = q.chain[:0]
	return err
}

// completeRefused completes the sends that the library has refused, beginning with the one at bad,
// or with the first if bad is none of them. The library checks some errors itself that other
// providers leave to the peer.
func (q *sendQueue) completeRefused(bad uint64) error {
	s := &q.a.sends
	first := max(slices.IndexFunc(q.chain, func(i uint16) bool { return addressIn(s.slotAt(i)) == bad }), 0)
	status := verbs.StatusSuccess
	for _, i := range q.chain[first:] {
		x := s.slotAt(i)
		switch {
		case status != verbs.StatusSuccess:
			status = verbs.StatusFlushed
		case (x.wr.Opcode == hca.WRCmpSwap || x.wr.Opcode == hca.WRFetchAdd) && typedAt[hca.AtomicWR](x.wr.WR[:], 0).RemoteAddr%verbs.AtomicLen != 0:
			status = verbs.StatusRemInvReq
		default:
			status = verbs.StatusLocQPOp
		}
		q.cq.made = append(q.cq.made, hca.CQE{Cookie: x.wr.WRID, QPN: q.num, Status: status})
	}
	return hca.ErrRefused
}

// errnoOf returns the result of a driver's function as an error. The function returns an errno, or
// a negative one, or -1 and sets errno.
func errnoOf(ret uintptr, errno unix.Errno) error {
	switch n := int32(ret); {
	case n > 0:
		return unix.Errno(n)
	case n == -1 && errno != 0:
		return errno
	case n < 0:
		return unix.Errno(-n)
	}
	return nil
}

// Taken returns false: the library does not report it.
func (q *sendQueue) Taken(uint64) bool { return false }

// Drop frees the slots of sends that were not posted.
func (q *sendQueue) Drop() {
	s := &q.a.sends
	s.free = append(s.free, q.chain...)
	q.chain = q.chain[:0]
	if i := slices.Index(s.queues, q); i >= 0 {
		s.queues = slices.Delete(s.queues, i, i+1)
	}
}

// Close calls Drop: the queue belongs to the library.
func (q *sendQueue) Close() error {
	q.Drop()
	return nil
}

// Announce posts the sends of a queue pair, and those of others with them.
func (a *adapter) Announce(_ hca.Handle, queue hca.SendQueue) error {
	q := queue.(*sendQueue)
	again := q.again
	if len(q.chain) > 0 {
		a.sends.postAll(a)
	}
	err := q.failed
	q.failed = nil
	if again && err == nil { // the driver rings only if the kernel processed the previous sends
		err = a.ringDoorbell(q.qp)
		q.again = errors.Is(err, unix.ENOTCONN)
	}
	return err
}

// recvQueue is a hca.RecvQueue.
type recvQueue struct {
	a     *adapter
	queue uintptr // ibv_qp or ibv_srq
	fn    uintptr // offset of the driver's function in ibv_context
}

// Put posts a receive.
func (q *recvQueue) Put(cookie uint64, place hca.Place) bool {
	p := q.a.page
	wr, addr := scratchVar[recvWR](p, 0)
	s, list := scratchVar[hca.Place](p, 64)
	_, bad := scratchVar[uint64](p, 128)
	*s = place
	*wr = recvWR{WRID: cookie, SGList: uint64(list), NumSGE: 1}
	ret, errno := p.invoke(peek[uintptr](q.a.ctx, q.fn), q.queue, addr, bad)
	return errnoOf(ret, errno) == nil
}

// Left returns 0: the library does not report it.
func (q *recvQueue) Left() int { return 0 }

// Close does nothing: the queue belongs to the library.
func (q *recvQueue) Close() error { return nil }
