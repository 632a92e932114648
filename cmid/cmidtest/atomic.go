package cmidtest

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmactor/rdmactor/verbs"
)

// atomicOp is what an atomic operation does: InfiniBand's AtomicETH, without the place.
type atomicOp struct {
	swaps      bool // compare and swap; else fetch and add
	compareAdd uint64
	swap       uint64
}

// serveAtomic does the peer's atomic operation and answers with what was there before. Memory is
// its loop's, so nothing comes between.
func (q *qp) serveAtomic(p *packet) {
	at, err := q.view.reach(q.pd, p.mem, verbs.RemoteAtomic)
	switch {
	case err != nil:
		q.refuse(p, fmt.Errorf("an atomic operation: %w", err))
		return
	case p.mem.addr%verbs.AtomicLen != 0:
		q.acknowledge(p, ackInvalid)
		q.fail()
		return
	}
	q.respond(p, at)
	switch old := binary.NativeEndian.Uint64(at); {
	case !p.atomic.swaps:
		binary.NativeEndian.PutUint64(at, old+p.atomic.compareAdd)
	case old == p.atomic.compareAdd:
		binary.NativeEndian.PutUint64(at, p.atomic.swap)
	}
}
