//go:build amd64 || arm64

package native

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// aside is an adapter for a call off the loop, with a separate page.
type aside struct {
	*adapter
	page *page
}

// CreateCQ makes a completion queue.
func (a *adapter) CreateCQ(entries int, event uint64) (hca.CQ, error) {
	cq, err := a.page.callObject(a.createCQ, a.ctx, uintptr(entries), uintptr(event), a.channel, 0)
	if err != nil {
		return hca.CQ{}, err
	}
	mem, err := mapMemory(polled * sizeOf[hca.WC]())
	a.recordObject(cqObject, cq, mem)
	got := int(peek[int32](cq, cqEntries))
	if err == nil && (got < entries || peek[uint64](cq, cqContext) != event) {
		err = a.unknownLayout("ibv_cq")
	}
	if err != nil {
		return hca.CQ{}, errors.Join(err, a.DestroyCQ(hca.Handle(cq)))
	}
	q := &completions{a: a, cq: cq, mem: mem}
	a.queues[hca.Handle(cq)] = q
	return hca.CQ{Handle: hca.Handle(cq), Entries: got, Queue: q}, nil
}

// DestroyCQ destroys a completion queue.
func (a *adapter) DestroyCQ(cq hca.Handle) error {
	if o := a.findObject(cqObject, uintptr(cq)); o != nil {
		a.ackEvents(a.page, o)
	}
	if q := a.queues[cq]; q != nil {
		q.removeRefs()
	}
	delete(a.queues, cq)
	return a.destroyObject(a.page, cqObject, a.destroyCQ, cq)
}

func (a *adapter) findObject(kind int, addr uintptr) *object {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[kind][addr]
}

// CreateSRQ makes a shared receive queue.
func (a *adapter) CreateSRQ(pd hca.Handle, maxWR int, event uint64) (hca.SRQ, error) {
	init, at := scratchVar[srqInitAttr](a.page, 0)
	*init = srqInitAttr{SRQContext: event, Attr: srqAttr{MaxWR: uint32(maxWR), MaxSGE: 1}}
	srq, err := a.page.callObject(a.createSRQ, uintptr(pd), at)
	if err != nil {
		return hca.SRQ{}, err
	}
	a.recordObject(srqObject, srq, nil)
	if peek[uint64](srq, srqContext) != event || peek[uint64](srq, srqPD) != uint64(pd) {
		return hca.SRQ{}, errors.Join(a.unknownLayout("ibv_srq"), a.DestroySRQ(hca.Handle(srq)))
	}
	return hca.SRQ{Handle: hca.Handle(srq), Queue: &recvQueue{a: a, queue: srq, fn: contextPostSRQ}}, nil
}

// ArmSRQ sets the limit.
func (a *adapter) ArmSRQ(srq hca.Handle, limit int) error {
	attr, at := scratchVar[srqAttr](a.page, 0)
	*attr = srqAttr{SRQLimit: uint32(limit)}
	return a.page.callStatus(a.modifySRQ, uintptr(srq), at, srqLimit)
}

// DestroySRQ destroys a shared receive queue.
func (a *adapter) DestroySRQ(srq hca.Handle) error {
	return a.destroyObject(a.page, srqObject, a.destroySRQ, srq)
}

// CreateQP makes a queue pair.
func (a *adapter) CreateQP(i *hca.QPInit) (hca.QP, error) {
	init, at := scratchVar[qpInitAttr](a.page, 0)
	*init = qpInitAttr{
		QPContext: i.Event, SendCQ: uint64(i.SendCQ), RecvCQ: uint64(i.RecvCQ), QPType: uint32(i.Type),
		Cap: qpCap{
			MaxSendWR: uint32(max(i.MaxSendWR, 1)), MaxRecvWR: uint32(max(i.MaxRecvWR, 1)), MaxSendSGE: uint32(max(i.MaxSGE, 1)),
			MaxRecvSGE: 1, MaxInlineData: uint32(i.MaxInline),
		},
	}
	if i.HasSRQ {
		init.SRQ, init.Cap.MaxRecvWR, init.Cap.MaxRecvSGE = uint64(i.SRQ), 0, 0
	}
	qp, err := a.page.callObject(a.createQP, uintptr(i.PD), at)
	if err != nil {
		return hca.QP{}, err
	}
	a.recordObject(qpObject, qp, nil)
	if peek[uint64](qp, qpContext) != i.Event || peek[uint64](qp, qpPD) != uint64(i.PD) {
		return hca.QP{}, errors.Join(a.unknownLayout("ibv_qp"), a.DestroyQP(hca.Handle(qp)))
	}
	made := hca.QP{Handle: hca.Handle(qp), Num: peek[uint32](qp, qpNum)}
	made.Sends = &sendQueue{a: a, qp: qp, num: made.Num, ud: i.Type == verbs.UD, cq: a.queues[i.SendCQ]}
	if !i.HasSRQ {
		made.Recvs = &recvQueue{a: a, queue: qp, fn: contextPostRecv}
	}
	return made, nil
}

// probeInline finds the largest size of inline data of a queue pair, which no attribute reports.
func (a *adapter) probeInline() error {
	pd, err := a.AllocPD()
	if err != nil {
		return err
	}
	defer func() { _ = a.DeallocPD(pd) }()
	cq, err := a.CreateCQ(2, 0)
	if err != nil {
		return err
	}
	defer func() { _ = a.DestroyCQ(cq.Handle) }()
	for _, n := range []int{maxInline, 96, 64, 48, 32} {
		qp, err := a.CreateQP(&hca.QPInit{
			Type: verbs.RC, PD: pd, SendCQ: cq.Handle, RecvCQ: cq.Handle, MaxSendWR: 1, MaxRecvWR: 1,
			MaxSGE: min(a.caps.Attr.MaxSGE, 2), MaxInline: n,
		})
		if err == nil {
			a.caps.Attr.MaxInline = n
			return a.DestroyQP(qp.Handle)
		}
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOMEM) {
			return err
		}
	}
	return nil
}

// ModifyQP changes a queue pair.
func (a *adapter) ModifyQP(qp hca.Handle, attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	return a.modifyQueuePair(a.page, qp, attr, mask)
}

// ModifyQP changes a queue pair.
func (a *aside) ModifyQP(qp hca.Handle, attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	return a.modifyQueuePair(a.page, qp, attr, mask)
}

func (a *adapter) modifyQueuePair(p *page, qp hca.Handle, attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	x, at := scratchVar[qpAttr](p, 0)
	*x = qpAttr{
		QPState: uint32(attr.State), CurQPState: uint32(attr.CurState), PathMTU: attr.PathMTU, QKey: attr.QKey, RQPSN: attr.RQPSN,
		SQPSN: attr.SQPSN, DestQPNum: attr.DestQPN, QPAccessFlags: attr.AccessFlags, AHAttr: hca.AHAttrOf(&attr.AH),
		PKeyIndex: attr.PKeyIndex, MaxRDAtomic: attr.MaxRDAtomic, MaxDestRDAtomic: attr.MaxDestRDAtomic,
		MinRNRTimer: attr.MinRNRTimer, PortNum: attr.Port, Timeout: attr.Timeout, RetryCnt: attr.RetryCount, RNRRetry: attr.RNRRetry,
	}
	return p.callStatus(a.modifyQP, uintptr(qp), at, uintptr(mask))
}

// Connected reports whether a queue pair that its driver moves is connected. soft-iWARP does not
// report the state, but its doorbell fails before.
func (a *adapter) Connected(qp hca.Handle) bool {
	if a.caps.Siw {
		return a.ringDoorbell(uintptr(qp)) == nil
	}
	attr, at := scratchVar[qpAttr](a.page, 0)
	_, init := scratchVar[qpInitAttr](a.page, 512)
	*attr = qpAttr{}
	err := a.page.callStatus(a.queryQP, uintptr(qp), at, uintptr(verbs.QPAttrState), init)
	return err == nil && attr.QPState == qpStateRTS
}

// ringDoorbell makes the kernel's soft-iWARP process a send queue.
func (a *adapter) ringDoorbell(qp uintptr) error {
	return uverbs.Doorbell(a.cmdFD(), peek[uint32](qp, qpHandle))
}

// cmdFD returns the descriptor of the device's file.
func (a *adapter) cmdFD() int { return int(peek[int32](a.ctx, contextCmdFD)) }

// DestroyQP destroys a queue pair.
func (a *adapter) DestroyQP(qp hca.Handle) error {
	return a.destroyObject(a.page, qpObject, a.destroyQP, qp)
}

// DestroyQP destroys a queue pair.
func (a *aside) DestroyQP(qp hca.Handle) error {
	return a.destroyObject(a.page, qpObject, a.destroyQP, qp)
}

// Attach joins a multicast group.
func (a *adapter) Attach(qp hca.Handle, gid [16]byte, lid uint16) error {
	return a.callMcast(a.attachMcast, qp, gid, lid)
}

// Detach leaves a multicast group.
func (a *adapter) Detach(qp hca.Handle, gid [16]byte, lid uint16) error {
	return a.callMcast(a.detachMcast, qp, gid, lid)
}

func (a *adapter) callMcast(v verb, qp hca.Handle, gid [16]byte, lid uint16) error {
	x, at := scratchVar[[16]byte](a.page, 0)
	*x = gid
	return a.page.callStatus(v, uintptr(qp), at, uintptr(lid))
}

// CreateAH makes an address handle.
func (a *adapter) CreateAH(pd hca.Handle, attr *verbs.AHAttr) (hca.AH, error) {
	return a.newAH(a.page, pd, attr)
}

// CreateAH makes an address handle.
func (a *aside) CreateAH(pd hca.Handle, attr *verbs.AHAttr) (hca.AH, error) {
	return a.newAH(a.page, pd, attr)
}

func (a *adapter) newAH(p *page, pd hca.Handle, attr *verbs.AHAttr) (hca.AH, error) {
	x, at := scratchVar[hca.AHAttr](p, 0)
	*x = hca.AHAttrOf(attr)
	ah, err := p.callObject(a.createAH, uintptr(pd), at)
	if err != nil {
		return hca.AH{}, err
	}
	a.recordObject(ahObject, ah, nil)
	return hca.AH{Handle: hca.Handle(ah)}, nil
}

// DestroyAH destroys an address handle. Queued sends are posted first: the library reads the
// handle's memory then, which it frees here.
func (a *adapter) DestroyAH(ah hca.Handle) error {
	a.sends.postAll(a)
	return a.destroyObject(a.page, ahObject, a.destroyAH, ah)
}

// ahOf returns the library's address handle.
func (a *adapter) ahOf(ah verbs.AH) uint64 {
	if h, ok := ah.(hca.Addressed); ok {
		return uint64(h.Made().Handle)
	}
	return 0
}
