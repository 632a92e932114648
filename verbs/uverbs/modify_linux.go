package uverbs

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// Modify changes the attributes that mask names.
func (q *queuePair) Modify(attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	d := q.dev
	if err := q.checkExists(); err != nil || mask == 0 {
		return err
	}
	quiet := q.firstUntaken()
	if q.dirty && mask&verbs.QPAttrState != 0 && attr.State == verbs.QPSQD {
		q.announceSends() // work requests posted before a disconnect are still sent
	}
	if err := d.hw.ModifyQP(q.handle, attr, mask); err != nil {
		return q.modifyError(attr, mask, err)
	}
	q.applyChange(attr, mask, quiet)
	return nil
}

// SetAccess changes the peer's rights. iWARP drivers differ: soft-iWARP stores the rights and never
// checks them, cxgb4 accepts no change of an existing connection.
func (q *queuePair) SetAccess(access verbs.Access) error {
	if !q.dev.attr.QPAccess {
		return fmt.Errorf("uverbs: %s: access rights of a queue pair: %w", q.dev.name, verbs.ErrNotSupported)
	}
	return q.Modify(&verbs.QPAttr{AccessFlags: uint32(access)}, verbs.QPAttrAccessFlags)
}

// checkExists returns the error of calls on a queue pair that no longer exists, else nil.
func (q *queuePair) checkExists() error {
	if err := q.dev.goneError(); err != nil {
		return err
	}
	if q.gone || q.leaving != nil {
		return fmt.Errorf("uverbs: queue pair destroyed: %w", unix.EINVAL)
	}
	return nil
}

func (q *queuePair) modifyError(attr *verbs.QPAttr, mask verbs.QPAttrMask, err error) error {
	return fmt.Errorf("uverbs: %s: modify_qp of %d to %d with %#x: %w", q.dev.name, q.num, attr.State, mask, err)
}

// applyChange records a change that the kernel has made. quiet is the value of q.quiet before the
// change.
func (q *queuePair) applyChange(attr *verbs.QPAttr, mask verbs.QPAttrMask, quiet uint64) {
	if mask&verbs.QPAttrMaxRDAtomic != 0 {
		q.reads = attr.MaxRDAtomic > 0
		q.backlog.atOnce = max(int(attr.MaxRDAtomic), 1)
	}
	if mask&verbs.QPAttrState == 0 {
		return
	}
	q.state = attr.State
	if q.dev.siw && q.state == verbs.QPError {
		// siw flushes its work requests before it answers. But when a connection closes, it forgets
		// the Reads that wait for their responses.
		q.flushOutstanding(quiet)
	}
}

func modifyRequest(handle uint32, a *verbs.QPAttr, mask verbs.QPAttrMask) modifyQP {
	r := modifyQP{
		QPHandle: handle, AttrMask: uint32(mask), QKey: a.QKey, RQPSN: a.RQPSN, SQPSN: a.SQPSN, DestQPNum: a.DestQPN,
		QPAccessFlags: a.AccessFlags, PKeyIndex: a.PKeyIndex, QPState: uint8(a.State), CurQPState: uint8(a.CurState),
		PathMTU: uint8(a.PathMTU), MaxRdAtomic: a.MaxRDAtomic, MaxDestRdAtomic: a.MaxDestRDAtomic, MinRNRTimer: a.MinRNRTimer,
		PortNum: a.Port, Timeout: a.Timeout, RetryCnt: a.RetryCount, RNRRetry: a.RNRRetry,
	}
	ah := &a.AH
	r.Dest = qpDest{
		DGID: ah.GRH.DGID, FlowLabel: ah.GRH.FlowLabel, DLID: ah.DLID, SGIDIndex: ah.GRH.SGIDIndex, HopLimit: ah.GRH.HopLimit,
		TrafficClass: ah.GRH.TrafficClass, SL: ah.SL, SrcPathBits: ah.SrcPathBits, StaticRate: ah.StaticRate,
		IsGlobal: bitOf(ah.Global), PortNum: ah.Port,
	}
	return r
}

// failedLater returns a Later for a call that is not made: its result is err.
func failedLater(err error) verbs.Later {
	return verbs.Later{Wait: func() error { return err }, End: func(error) error { return err }}
}

// ModifyLater is Modify for a change that may block in the kernel. On the change to RTR the kernel
// looks up the peer's link address.
func (q *queuePair) ModifyLater(attr *verbs.QPAttr, mask verbs.QPAttrMask) verbs.Later {
	if err := q.checkExists(); err != nil || mask == 0 {
		return failedLater(err)
	}
	to, hw, handle, quiet := *attr, q.dev.hw, q.handle, q.firstUntaken()
	q.changes++
	return verbs.Later{
		Wait: func() error {
			return hw.Aside(func(hw hca.Adapter) error { return hw.ModifyQP(handle, &to, mask) })
		},
		End: func(err error) error {
			err = q.recordResult(&to, mask, quiet, err)
			if q.changes--; q.changes == 0 {
				q.deliverEarly()
			}
			return err
		},
	}
}

// recordResult records the result of a change.
func (q *queuePair) recordResult(to *verbs.QPAttr, mask verbs.QPAttrMask, quiet uint64, err error) error {
	switch {
	case err != nil:
		return q.modifyError(to, mask, err)
	case !q.gone && q.state != verbs.QPError: // otherwise it has failed since
		q.applyChange(to, mask, quiet)
	}
	return nil
}

// DestroyLater is Destroy split into parts. The kernel does not destroy a queue pair that is
// attached to a multicast group, so the queue pair leaves its groups first. It is also flushed
// first, so that a partly received message returns its receive.
func (q *queuePair) DestroyLater() verbs.Later {
	if q.gone || q.leaving != nil {
		return failedLater(nil)
	}
	d := q.dev
	// the kernel would refuse it, or would then modify a new queue pair with the same handle
	if q.changes > 0 {
		return failedLater(fmt.Errorf("uverbs: %s: destroy_qp of %d, which is being modified: %w", d.name, q.num, unix.EBUSY))
	}
	l := &leaving{quiet: q.firstUntaken(), back: make(chan struct{})}
	lost := d.lost != nil
	if !lost {
		if q.state != verbs.QPReset && q.state != verbs.QPError {
			_ = q.Modify(&verbs.QPAttr{State: verbs.QPError}, verbs.QPAttrState)
		}
		for len(q.groups) > 0 {
			if err := q.Detach(q.groups[0].gid, q.groups[0].lid); err != nil {
				return failedLater(err)
			}
		}
	}
	q.leaving, q.state = l, verbs.QPError
	q.sq.Drop()
	hw, handle := d.hw, q.handle
	return verbs.Later{
		Wait: func() error {
			defer close(l.back)
			if !lost {
				l.err = hw.Aside(func(hw hca.Adapter) error { return hw.DestroyQP(handle) })
			}
			return l.err
		},
		End: q.recordDestroyed,
	}
}

// recordDestroyed records that the kernel has destroyed the queue pair, or returns why it has not.
func (q *queuePair) recordDestroyed(err error) error {
	switch {
	case q.gone:
		return nil
	case err != nil && q.dev.lost == nil:
		q.leaving = nil
		return fmt.Errorf("uverbs: %s: destroy_qp of %d: %w", q.dev.name, q.num, err)
	}
	q.finishDestroyed()
	return nil
}

// Destroy flushes and frees the queue pair.
func (q *queuePair) Destroy() error {
	if q.gone {
		return nil
	}
	if l := q.leaving; l != nil {
		<-l.back
		return q.recordDestroyed(l.err)
	}
	later := q.DestroyLater()
	return later.End(later.Wait())
}
