package workload

import (
	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

// forge uses a key that the peer has not granted: with another right, beyond the end, or for
// another connection's memory. The connection must end, and the memory stay unchanged.
func (e *connEnd) forge(op connOp) {
	e.remote(op, false, func(g *grant) {
		if key, off, ok := e.forged(g, op); ok {
			e.use(key, off, g.readOnly || op.way/4%2 == 0)
			return
		}
		e.memory.busy = false
	})
}

// forged derives a key from one that was granted, and returns the offset at which to use it.
func (e *connEnd) forged(g *grant, op connOp) (key rdma.RemoteKey, off int, ok bool) {
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
		if g = e.another(); g == nil {
			return key, 0, false
		}
		key = g.key
	}
	return key, off, true
}

// use writes or reads with a forged key.
func (e *connEnd) use(key rdma.RemoteKey, off int, write bool) {
	e.c.ending, e.c.rude = true, true
	e.c.excuse()
	m := &e.memory
	answered := func(answer any) {
		m.busy = false
		if f, ok := answer.(*rdma.AccessError); !ok || !refused(f) {
			e.c.forged = true
		}
	}
	n := min(8, int(key.Length)-off)
	if !write {
		e.h.ask(e.id, &rdma.Read{Memory: m.scratch, Length: n, Key: key, Offset: off}, func(answer any) {
			answered(answer)
			if _, ok := answer.(*rdma.ReadDone); ok {
				e.h.w.e.World.Fail("%s: %s has read with a key that nobody has given it", e.h.w.e.Name, e.key)
			}
		})
		return
	}
	e.h.ask(e.id, &rdma.Call{Fn: func(*cmid.ID) error {
		_, err := m.scratch.WriteAt([]byte("mischief")[:n], 0)
		return err
	}}, func(any) {
		e.h.ask(e.id, &rdma.Write{Memory: m.scratch, Length: n, Key: key, Offset: off}, answered)
	})
}

// another returns memory that the peer's program has granted to another end.
func (e *connEnd) another() *grant {
	for _, c := range e.c.w.order {
		for _, x := range c.ends {
			if x == nil || x == e || x == e.peer() || x.h != e.peer().h || x.dead {
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
