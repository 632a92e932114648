package workload

import (
	"encoding/binary"
	"errors"
	"slices"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// connMemories is the memory of an end.
type connMemories struct {
	granted []*grant
	scratch *rdma.Memory             // for its reads and writes
	busy    bool                     // the scratch is in use
	after   map[uint64]*oracle.Write // keyed by the message sent after the Write
}

// grant is memory of an end that its peer may use.
type grant struct {
	m        *rdma.Memory
	key      rdma.RemoteKey
	ledger   *oracle.Memory
	integer  *oracle.Integer // of memory for atomic operations
	under    int             // operations of the peer that may be under way
	live     bool
	readOnly bool
}

// scratchBytes is the maximum length of a read or a write.
const scratchBytes = 2000

// allocMemory allocates memory and grants it.
func (e *connEnd) allocMemory(op connOp) {
	access := rdma.RemoteRead | rdma.RemoteWrite
	switch op.way % 4 {
	case 0:
		access = rdma.RemoteAtomic
	case 1:
		access = rdma.RemoteRead
	}
	e.h.sendCommand(e.id, &rdma.AllocMemory{Bytes: op.bytes, Access: access}, func(answer any) {
		a, ok := answer.(*rdma.MemoryAllocated)
		if !ok {
			return
		}
		g := &grant{m: a.Memory, ledger: e.c.w.grants.Memory("memory of "+e.key, op.bytes), readOnly: access == rdma.RemoteRead}
		if g.readOnly {
			g.ledger.ReadOnly()
		}
		if access == rdma.RemoteAtomic {
			g.integer = e.c.w.grants.Integer("integer of " + e.key)
		}
		e.grantMemory(g)
	})
}

// grantMemory grants memory to the peer, perhaps again after the grant was revoked.
func (e *connEnd) grantMemory(g *grant) {
	e.h.sendCommand(e.id, &rdma.Grant{Memory: g.m}, func(answer any) {
		if a, ok := answer.(*rdma.Granted); ok {
			if s := e.h.w.e.Security; s.Secured() && !s.OneSided {
				e.h.w.e.failWorld("%s has granted memory, which nobody has allowed", e.key)
			}
			g.key, g.live = a.Key, true
			g.ledger.Grant()
			if !slices.Contains(e.memory.granted, g) {
				e.memory.granted = append(e.memory.granted, g)
			}
		}
	})
}

// revokeGrant revokes a grant. A peer that still uses it loses its connection.
func (e *connEnd) revokeGrant(op connOp) {
	all := e.memory.granted
	if len(all) == 0 {
		return
	}
	g := all[op.way%len(all)]
	if !g.live {
		if op.way%2 == 0 {
			e.grantMemory(g)
		}
		return
	}
	e.c.ending, g.live = true, false
	e.c.rude = e.c.rude || g.under > 0 // a late operation ends the connection
	e.c.excuseFaults()
	var cmd rdma.Command = &rdma.Revoke{Memory: g.m}
	if op.way%3 == 0 {
		cmd = &rdma.FreeMemory{Memory: g.m}
	}
	e.h.sendCommand(e.id, cmd, func(answer any) {
		switch answer.(type) {
		case *rdma.Revoked, *rdma.Done:
			g.ledger.Revoke()
		default:
			g.live = true
		}
	})
}

// lookAtMemory looks at granted memory, as its owner.
func (e *connEnd) lookAtMemory(op connOp) {
	all := e.memory.granted
	if len(all) == 0 {
		return
	}
	g := all[op.way%len(all)]
	e.h.sendCommand(e.id, &rdma.Call{Fn: func(*cmid.ID) error {
		p := make([]byte, g.m.Len())
		if _, err := g.m.ReadAt(p, 0); err != nil {
			return err
		}
		switch {
		case g.integer == nil:
			g.ledger.Look(e.c.w.now(), p)
		case g.under == 0:
			g.integer.End(e.c.w.now(), binary.NativeEndian.Uint64(p))
		}
		return nil
	}}, nil)
}

// withPeerMemory finds memory for an operation of e: memory of the peer, and e's scratch memory,
// which is reserved until busy is false. It does nothing if there is none.
func (e *connEnd) withPeerMemory(op connOp, atomic bool, then func(g *grant)) {
	p, m := e.otherEnd(), &e.memory
	if p == nil || m.busy {
		return
	}
	var fit []*grant
	for _, g := range p.memory.granted {
		if atomic == (g.integer != nil) {
			fit = append(fit, g)
		}
	}
	if len(fit) == 0 {
		return
	}
	g := fit[op.way%len(fit)]
	m.busy = true
	if m.scratch != nil {
		then(g)
		return
	}
	e.h.sendCommand(e.id, &rdma.AllocMemory{Bytes: scratchBytes}, func(answer any) {
		a, ok := answer.(*rdma.MemoryAllocated)
		if m.busy = ok; ok {
			m.scratch = a.Memory
			then(g)
		}
	})
}

// recordUse records that an operation of e is under way. Using a revoked key ends the connection.
func (g *grant) recordUse(e *connEnd) {
	g.under++
	if !g.live {
		e.c.ending, e.c.rude = true, true
		e.c.excuseFaults()
	}
}

// usedSpan returns the part of the grant that an operation uses.
func (g *grant) usedSpan(op connOp) (off, n int) {
	off = op.n % g.m.Len()
	return off, min(op.bytes, g.m.Len()-off)
}

// writeToPeer writes to the peer's memory, and may send a message after it.
func (e *connEnd) writeToPeer(op connOp) {
	e.withPeerMemory(op, false, func(g *grant) { e.writeTo(g, op) })
}

func (e *connEnd) writeTo(g *grant, op connOp) {
	m := &e.memory
	off, n := g.usedSpan(op)
	p := make([]byte, n)
	e.c.w.writes++
	oracle.Fill(p, 1<<20, uint64(e.c.w.writes))
	e.h.sendCommand(e.id, &rdma.Call{Fn: func(*cmid.ID) error {
		_, err := m.scratch.WriteAt(p, 0)
		return err
	}}, func(answer any) {
		if _, ok := answer.(*rdma.Done); !ok {
			m.busy = false
			return
		}
		w := g.ledger.Write(off, p)
		g.recordUse(e) // for good: the answer leaves open whether the peer has executed it
		e.h.sendCommand(e.id, &rdma.Write{Memory: m.scratch, Length: n, Key: g.key, Offset: off}, func(answer any) {
			m.busy = false
			if f, ok := answer.(*rdma.AccessError); ok && refusedLocally(f) {
				w.Refused()
			}
		})
		if op.way%2 == 0 {
			s := e.newMessage("clerk", min(8, e.max), false, false)
			m.after[uint64(e.out.Submitted()-1)] = w
			e.h.root.RequestWithCustomSender(e.id, s, e.clerk)
		}
	})
}

// readFromPeer reads the peer's memory.
func (e *connEnd) readFromPeer(op connOp) {
	e.withPeerMemory(op, false, func(g *grant) { e.readFrom(g, op) })
}

func (e *connEnd) readFrom(g *grant, op connOp) {
	m := &e.memory
	off, n := g.usedSpan(op)
	r := g.ledger.Read(off, n)
	g.recordUse(e)
	e.h.sendCommand(e.id, &rdma.Read{Memory: m.scratch, Length: n, Key: g.key, Offset: off}, func(answer any) {
		m.busy = false
		g.under--
		if _, ok := answer.(*rdma.ReadDone); !ok {
			r.Failed()
			return
		}
		p := make([]byte, n)
		if _, err := m.scratch.ReadAt(p, 0); err != nil {
			r.Failed()
			return
		}
		r.Done(e.c.w.now(), p)
	})
}

// doAtomic adds to an integer of the peer, or swaps it.
func (e *connEnd) doAtomic(op connOp) {
	e.withPeerMemory(op, true, func(g *grant) { e.atomicOn(g, op) })
}

func (e *connEnd) atomicOn(g *grant, op connOp) {
	m := &e.memory
	off := 0
	if op.way%8 == 7 {
		off = 4 // not the offset of an integer
	}
	var cmd rdma.Command
	var a *oracle.Atomic
	if op.way%3 == 0 {
		cmd = &rdma.CompareSwap{Memory: m.scratch, Key: g.key, Offset: off, Compare: uint64(op.n % 4), Swap: uint64(op.bytes)}
		a = g.integer.Swap(uint64(op.n%4), uint64(op.bytes))
	} else {
		cmd = &rdma.FetchAdd{Memory: m.scratch, Key: g.key, Offset: off, Add: 1 + uint64(op.n%3)}
		a = g.integer.Add(1 + uint64(op.n%3))
	}
	g.recordUse(e)
	e.h.sendCommand(e.id, cmd, func(answer any) {
		m.busy = false
		g.under--
		switch v := answer.(type) {
		case *rdma.AtomicDone:
			if off != 0 {
				e.h.w.e.failWorld("an atomic operation of %s at %d is done", e.key, off)
			}
			a.Done(v.Old)
		case *rdma.AccessError:
			if refusedLocally(v) {
				a.Refused()
			}
		}
	})
}

// refusedLocally reports whether an operation was refused on its own side, without any effect.
func refusedLocally(f *rdma.AccessError) bool {
	return !errors.Is(f, rdma.ErrFlushed) && !errors.Is(f, rdma.ErrRemoteAccess)
}
