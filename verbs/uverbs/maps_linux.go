package uverbs

import (
	"os"

	"github.com/rdmactor/rdmactor/verbs"
)

// mapCompletions maps a completion queue.
func (d *device) mapCompletions(resp *createCQResp) (cqRing, error) {
	if d.siw {
		r := *unionOf[siwCreateCQResp](&resp.Driver)
		mem, err := d.k.mapQueue(r.CQKey, pages(int(r.NumCQE)*sizeOf[siwCQE]()+sizeOf[siwCQCtrl]()))
		if err != nil {
			return nil, err
		}
		q, err := newSiwCompletions(mem, r.NumCQE)
		if err != nil {
			_ = unmap(&mem)
			return nil, err
		}
		return q, nil
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
	mem, err := d.k.mapQueue(mi.Offset, int(mi.Size))
	if err != nil {
		return rxeQueue{}, err
	}
	q, err := newRxeQueue(mem, elem, producer)
	if err != nil {
		_ = unmap(&mem)
	}
	return q, err
}

func (d *device) mapSiw(key uint64, n uint32, elem int, head headFunc) (siwQueue, error) {
	mem, err := d.k.mapQueue(key, pages(int(n)*elem))
	if err != nil {
		return siwQueue{}, err
	}
	q, err := newSiwQueue(mem, n, elem, head)
	if err != nil {
		_ = unmap(&mem)
	}
	return q, err
}

// pages rounds up: a queue is mapped whole.
func pages(n int) int { return (n + os.Getpagesize() - 1) &^ (os.Getpagesize() - 1) }
