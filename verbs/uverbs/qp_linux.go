package uverbs

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// CreateQP makes a queue pair.
func (d *device) CreateQP(t verbs.QPType, attr verbs.QPInitAttr) (verbs.ProviderQP, error) {
	if err := d.goneError(); err != nil {
		return nil, err
	}
	q := &queuePair{dev: d, typ: t, attr: attr, reads: true, backlog: backlog{atOnce: d.attr.MaxRDAtom}}
	if q.attr.MaxSGE == 0 {
		q.attr.MaxSGE = 1
	}
	if err := q.checkAttr(); err != nil {
		return nil, err
	}
	if err := q.createInKernel(); err != nil {
		return nil, fmt.Errorf("uverbs: %s: create_qp: %w", d.name, err)
	}
	q.list = make([]place, 0, q.attr.MaxSGE)
	q.sends = newSends(q.attr.MaxSendWR)
	q.recvs = newRecvs(q.attr.MaxRecvWR)
	d.registerQP(q)
	q.pd.users++
	q.sendCQ.users++
	q.recvCQ.users++
	q.sendPart.room -= q.attr.MaxSendWR
	if q.srq != nil {
		q.srq.users++
		if q.recvPart.shared[q.srq]++; q.recvPart.shared[q.srq] == 1 {
			q.recvPart.room -= q.srq.attr.MaxWR
		}
	} else {
		q.recvPart.room -= q.attr.MaxRecvWR
	}
	q.sendCQ.scheduleSettle()
	q.recvCQ.scheduleSettle()
	return q, nil
}

// registerQP enters q in the table by number. If another queue pair is entered under that number,
// it no longer exists: the kernel never uses a number twice at a time. Only the call that destroyed
// it has not returned yet.
func (d *device) registerQP(q *queuePair) {
	if old := d.qps[q.num]; old != nil && old.leaving != nil {
		old.finishDestroyed()
	}
	d.qps[q.num] = q
}

// checkAttr validates the attributes and gets the queues from them.
func (q *queuePair) checkAttr() error {
	d, a := q.dev, &q.attr
	var okSend, okRecv bool
	q.sendCQ, okSend = a.SendCQ.(*completionQueue)
	q.recvCQ, okRecv = a.RecvCQ.(*completionQueue)
	switch {
	case q.typ != verbs.RC && (q.typ != verbs.UD || d.attr.MaxDatagram == 0):
		return fmt.Errorf("uverbs: %s has no queue pairs of type %d: %w", d.name, q.typ, verbs.ErrNotSupported)
	case !okSend || !okRecv || q.sendCQ.dev != d || q.recvCQ.dev != d || q.sendCQ.gone || q.recvCQ.gone:
		return fmt.Errorf("uverbs: queue pair without completion queues of %s: %w", d.name, unix.EINVAL)
	case a.MaxSendWR < 0 || a.MaxSendWR > d.attr.MaxQPWR || a.MaxRecvWR < 0 || a.MaxRecvWR > d.attr.MaxQPWR:
		return fmt.Errorf("uverbs: queues of %d and %d, more than %d: %w", a.MaxSendWR, a.MaxRecvWR, d.attr.MaxQPWR, unix.EINVAL)
	case a.MaxSGE < 0 || a.MaxSGE > d.attr.MaxSGE:
		return fmt.Errorf("uverbs: %d scatter/gather elements, more than %d: %w", a.MaxSGE, d.attr.MaxSGE, unix.EINVAL)
	}
	if a.SRQ != nil {
		s, ok := a.SRQ.(*sharedQueue)
		if !ok || s.dev != d || s.gone {
			return fmt.Errorf("uverbs: not a shared receive queue of %s: %w", d.name, unix.EINVAL)
		}
		q.srq = s
	}
	var err error
	if q.pd, err = d.domainOf(a.PD); err == nil && q.srq != nil && q.srq.pd != q.pd {
		return fmt.Errorf("uverbs: shared receive queue of another protection domain than the queue pair's: %w", unix.EINVAL)
	}
	return err
}

// chooseParts chooses completion queues of the kernel that have room for everything that the queue
// pair may have outstanding. CreateQP then reserves that room.
func (q *queuePair) chooseParts() (err error) {
	recvs := q.attr.MaxRecvWR
	if q.srq != nil {
		recvs = 0
	}
	if q.sendCQ == q.recvCQ {
		q.sendPart, err = q.sendCQ.partFor(q.attr.MaxSendWR+recvs, q.srq)
		q.recvPart = q.sendPart
		return err
	}
	if q.sendPart, err = q.sendCQ.partFor(q.attr.MaxSendWR, nil); err == nil {
		q.recvPart, err = q.recvCQ.partFor(recvs, q.srq)
	}
	return err
}

func (q *queuePair) createInKernel() error {
	d := q.dev
	if err := q.chooseParts(); err != nil {
		return err
	}
	q.event = d.addHandle(q)
	init := hca.QPInit{
		Event: q.event, Type: q.typ, PD: q.pd.handle, SendCQ: q.sendPart.handle, RecvCQ: q.recvPart.handle,
		MaxSendWR: q.attr.MaxSendWR, MaxRecvWR: q.attr.MaxRecvWR, MaxSGE: q.attr.MaxSGE, MaxInline: d.attr.MaxInline,
	}
	if q.srq != nil {
		init.HasSRQ, init.SRQ = true, q.srq.handle
	}
	made, err := d.hw.CreateQP(&init)
	if err != nil {
		delete(d.handles, q.event)
		return d.explainLimit(err)
	}
	q.handle, q.num, q.sq, q.rq = made.Handle, made.Num, made.Sends, made.Recvs
	return nil
}

// Num returns the queue pair number.
func (q *queuePair) Num() uint32 { return q.num }

// Context returns QPInitAttr.Context.
func (q *queuePair) Context() any { return q.attr.Context }

// OnEvent sets the function that is called for events.
func (q *queuePair) OnEvent(f func(verbs.QPEvent)) { q.onEvent = f }

// group is a multicast group.
type group struct {
	gid [16]byte
	lid uint16
}

// Attach joins a multicast group.
func (q *queuePair) Attach(gid [16]byte, lid uint16) error {
	g := group{gid, lid}
	err := q.callMcast(g, q.dev.hw.Attach)
	if err == nil && !slices.Contains(q.groups, g) {
		q.groups = append(q.groups, g)
	}
	return err
}

// Detach leaves a multicast group.
func (q *queuePair) Detach(gid [16]byte, lid uint16) error {
	g := group{gid, lid}
	err := q.callMcast(g, q.dev.hw.Detach)
	if i := slices.Index(q.groups, g); i >= 0 && err == nil {
		q.groups = slices.Delete(q.groups, i, i+1)
	}
	return err
}

func (q *queuePair) callMcast(g group, do func(qp hca.Handle, gid [16]byte, lid uint16) error) error {
	d := q.dev
	if err := d.goneError(); err != nil {
		return err
	}
	if q.gone || q.leaving != nil || q.typ != verbs.UD {
		return fmt.Errorf("uverbs: multicast without a datagram queue pair: %w", unix.EINVAL)
	}
	if err := do(q.handle, g.gid, g.lid); err != nil {
		return fmt.Errorf("uverbs: %s: multicast group %x: %w", d.name, g.gid, err)
	}
	return nil
}
