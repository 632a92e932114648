package uverbs

import (
	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// mapCompletions maps a completion queue.
func (k *kernel) mapCompletions(resp *createCQResp) (cqRing, error) {
	if k.siw {
		r := *unionOf[siwCreateCQResp](&resp.Driver)
		size := roundToPages(int(r.NumCQE)*sizeOf[siwCQE]() + sizeOf[siwCQCtrl]())
		return mapAs(k, r.CQKey, size, func(mem []byte) (cqRing, error) {
			return newSiwCompletions(mem, r.NumCQE)
		})
	}
	q, err := k.mapRxe(unionOf[rxeCreateCQResp](&resp.Driver).MI, sizeOf[hca.WC](), false)
	if err != nil {
		return nil, err
	}
	return &rxeCompletions{q}, nil
}

// mapQueues maps a queue pair's work queues.
func (k *kernel) mapQueues(resp *createQPResp, init *hca.QPInit, to *hca.QP) error {
	if k.siw {
		return k.mapSiwQueues(*unionOf[siwCreateQPResp](&resp.Driver), init, to)
	}
	r := *unionOf[rxeCreateQPResp](&resp.Driver)
	sq, err := k.mapRxe(r.SQ, sizeOf[rxeSendWQE]()+max(init.MaxInline, init.MaxSGE*sizeOf[place]()), true)
	if err != nil {
		return err
	}
	to.Sends = &rxeSends{rxeQueue: sq, maxInline: init.MaxInline, ud: init.Type == verbs.UD}
	if init.HasSRQ {
		return nil
	}
	rq, err := k.mapRxe(r.RQ, sizeOf[rxeRecvWQE](), true)
	if err != nil {
		return err
	}
	to.Recvs = &rxeRecvs{rq}
	return nil
}

func (k *kernel) mapSiwQueues(r siwCreateQPResp, init *hca.QPInit, to *hca.QP) error {
	sq, err := k.mapSiw(r.SQKey, r.NumSQE, sizeOf[siwSQE](), siwSQEHead)
	if err != nil {
		return err
	}
	to.Sends = &siwSends{siwQueue: sq}
	if init.HasSRQ {
		return nil
	}
	rq, err := k.mapSiw(r.RQKey, r.NumRQE, sizeOf[siwRQE](), siwRQEHead)
	if err != nil {
		return err
	}
	to.Recvs = &siwRecvs{rq}
	return nil
}

// mapShared maps a shared receive queue.
func (k *kernel) mapShared(resp *createSRQResp) (recvRing, error) {
	if k.siw {
		r := *unionOf[siwCreateSRQResp](&resp.Driver)
		q, err := k.mapSiw(r.SRQKey, r.NumRQE, sizeOf[siwRQE](), siwRQEHead)
		if err != nil {
			return nil, err
		}
		return &siwRecvs{q}, nil
	}
	q, err := k.mapRxe(unionOf[rxeCreateSRQResp](&resp.Driver).MI, sizeOf[rxeRecvWQE](), true)
	if err != nil {
		return nil, err
	}
	return &rxeRecvs{q}, nil
}

func (k *kernel) mapRxe(mi rxeMinfo, elem int, producer bool) (rxeQueue, error) {
	return mapAs(k, mi.Offset, int(mi.Size), func(mem []byte) (rxeQueue, error) {
		return newRxeQueue(mem, elem, producer)
	})
}

func (k *kernel) mapSiw(key uint64, n uint32, elem int, head headFunc) (siwQueue, error) {
	return mapAs(k, key, roundToPages(int(n)*elem), func(mem []byte) (siwQueue, error) {
		return newSiwQueue(mem, n, elem, head)
	})
}

// mapAs maps the shared memory of a queue, and makes the queue from it.
func mapAs[Q any](
	k *kernel, off uint64, size int, queue func(mem []byte) (Q, error),
) (none Q, err error) {
	mem, err := k.mapQueue(off, size)
	if err != nil {
		return none, err
	}
	q, err := queue(mem)
	if err != nil {
		_ = unmapOnce(&mem)
		return none, err
	}
	return q, nil
}
