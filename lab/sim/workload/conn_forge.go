package workload

import (
	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

// useForged uses a key that the peer has not granted: with another right, beyond the end, or for
// another connection's memory. The connection must end, and the memory stay unchanged.
func (e *connEnd) useForged(op connOp) {
	e.withPeerMemory(op, false, func(g *grant) {
		if key, off, ok := e.forgeKey(g, op); ok {
			e.useKey(key, off, g.readOnly || op.way/4%2 == 0)
			return
		}
		e.memory.busy = false
	})
}

// forgeKey derives a key from one that was granted, and returns the offset at which to use it.
func (e *connEnd) forgeKey(g *grant, op connOp) (key rdma.RemoteKey, off int, ok bool) {
	key = g.key
	switch way := op.way % 4; {
	case g.readOnly && way != 3:
		key.Rights, off = rdma.RemoteRead|rdma.RemoteWrite, op.n%g.m.Len()
	case way < 2:
		key.Length += 64
		off = g.m.Len()
	case way == 2:
		key.Addr -= 8
	default:
		if g = e.findOtherGrant(); g == nil {
			return key, 0, false
		}
		key = g.key
	}
	return key, off, true
}

// useKey writes or reads with a forged key.
func (e *connEnd) useKey(key rdma.RemoteKey, off int, write bool) {
	e.c.ending, e.c.rude = true, true
	e.c.excuseFaults()
	m := &e.memory
	answered := func(answer any) {
		m.busy = false
		if f, ok := answer.(*rdma.AccessError); !ok || !refusedLocally(f) {
			e.c.forged = true
		}
	}
	n := min(8, int(key.Length)-off)
	if !write {
		e.h.sendCommand(e.id, &rdma.Read{Memory: m.scratch, Length: n, Key: key, Offset: off}, func(answer any) {
			answered(answer)
			if _, ok := answer.(*rdma.ReadDone); ok {
				e.h.w.e.failWorld("%s has read with a key that nobody has given it", e.key)
			}
		})
		return
	}
	e.h.sendCommand(e.id, &rdma.Call{Fn: func(*cmid.ID) error {
		_, err := m.scratch.WriteAt([]byte("mischief")[:n], 0)
		return err
	}}, func(any) {
		e.h.sendCommand(e.id, &rdma.Write{Memory: m.scratch, Length: n, Key: key, Offset: off}, answered)
	})
}

// findOtherGrant returns memory that the peer's program has granted to another end.
func (e *connEnd) findOtherGrant() *grant {
	for _, c := range e.c.w.order {
		for _, x := range c.ends {
			if x == nil || x == e || x == e.otherEnd() || x.h != e.otherEnd().h || x.dead {
				continue
			}
			for _, g := range x.memory.granted {
				if g.live && g.integer == nil && !x.ended {
					return g
				}
			}
		}
	}
	return nil
}
