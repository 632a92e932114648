package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// mapCompletions maps a completion queue.
func (d *device) mapCompletions(resp *createCQResp) (cqRing, error) {
	if d.siw {
		r := *unionOf[siwCreateCQResp](&resp.Driver)
		size := pages(int(r.NumCQE)*sizeOf[siwCQE]() + sizeOf[siwCQCtrl]())
		return mapAs(d.k, r.CQKey, size, func(mem []byte) (cqRing, error) {
			return newSiwCompletions(mem, r.NumCQE)
		})
	}
	q, err := d.mapRxe(unionOf[rxeCreateCQResp](&resp.Driver).MI, sizeOf[uverbsWC](), false)
	if err != nil {
		return nil, err
	}
	return &rxeCompletions{q}, nil
}

// mapQueues maps a queue pair's work queues.
func (q *queuePair) mapQueues(resp *createQPResp) error {
	d := q.dev
	if d.siw {
		return q.mapSiw(*unionOf[siwCreateQPResp](&resp.Driver))
	}
	r := *unionOf[rxeCreateQPResp](&resp.Driver)
	sq, err := d.mapRxe(r.SQ, sizeOf[rxeSendWQE]()+max(d.attr.MaxInline, q.attr.MaxSGE*sizeOf[rxeSGE]()), true)
	if err != nil {
		return err
	}
	q.sq = &rxeSends{rxeQueue: sq, maxInline: d.attr.MaxInline, ud: q.typ == verbs.UD}
	if q.srq != nil {
		return nil
	}
	rq, err := d.mapRxe(r.RQ, sizeOf[rxeRecvWQE](), true)
	if err != nil {
		return err
	}
	q.rq = &rxeRecvs{rq}
	return nil
}

func (q *queuePair) mapSiw(r siwCreateQPResp) error {
	sq, err := q.dev.mapSiw(r.SQKey, r.NumSQE, sizeOf[siwSQE](), siwSQEHead)
	if err != nil {
		return err
	}
	q.sq = &siwSends{sq}
	if q.srq != nil {
		return nil
	}
	rq, err := q.dev.mapSiw(r.RQKey, r.NumRQE, sizeOf[siwRQE](), siwRQEHead)
	if err != nil {
		return err
	}
	q.rq = &siwRecvs{rq}
	return nil
}

// mapShared maps a shared receive queue.
func (d *device) mapShared(resp *createSRQResp) (recvRing, error) {
	if d.siw {
		r := *unionOf[siwCreateSRQResp](&resp.Driver)
		q, err := d.mapSiw(r.SRQKey, r.NumRQE, sizeOf[siwRQE](), siwRQEHead)
		if err != nil {
			return nil, err
		}
		return &siwRecvs{q}, nil
	}
	q, err := d.mapRxe(unionOf[rxeCreateSRQResp](&resp.Driver).MI, sizeOf[rxeRecvWQE](), true)
	if err != nil {
		return nil, err
	}
	return &rxeRecvs{q}, nil
}

func (d *device) mapRxe(mi rxeMinfo, elem int, producer bool) (rxeQueue, error) {
	return mapAs(d.k, mi.Offset, int(mi.Size), func(mem []byte) (rxeQueue, error) {
		return newRxeQueue(mem, elem, producer)
	})
}

func (d *device) mapSiw(key uint64, n uint32, elem int, head headFunc) (siwQueue, error) {
	return mapAs(d.k, key, pages(int(n)*elem), func(mem []byte) (siwQueue, error) {
		return newSiwQueue(mem, n, elem, head)
	})
}

// mapAs maps what the kernel shares of a queue, and makes the queue of it.
func mapAs[Q any](
	k *kernel, off uint64, size int, queue func(mem []byte) (Q, error),
) (none Q, err error) {
	mem, err := k.mapQueue(off, size)
	if err != nil {
		return none, err
	}
	q, err := queue(mem)
	if err != nil {
		_ = unmap(&mem)
		return none, err
	}
	return q, nil
}
