package datapath

import (
	"fmt"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/verbs"
)

// resources is the part of its device that a connection uses besides its queue pair: a protection
// domain, memory to receive into and to send from, and entries of a completion queue. Only its
// methods use its fields.
type resources struct {
	d       *Device
	pd      verbs.PD     // of the queue pair
	dom     *domain      // of the memory to receive into and to send from
	area    *Area        // of pd and dom; nil: no memory for one-sided operations
	cq      *completions // nil: no entries are claimed
	entries int          // claimed of cq
}

// claimDomain chooses the protection domain of the queue pair, and the domain of the memory to
// receive into and to send from. large: the connection may offer or read messages.
//
// Memory that a connection exposes to its peer is in a protection domain without any other queue
// pair, so no other peer can reach it, whatever it knows. On a device whose queue pairs may all use
// Device.PD's memory (the embedded one) every connection gets a protection domain, which costs a
// few bytes. On others, InfiniBand among them, everything that a queue pair touches must be in its
// protection domain, so the connection cannot use the loop's shared memory. There a connection gets
// a private domain only if it may have to offer or read messages, or if its owner has one
// (Terms.Area).
func (r *resources) claimDomain(d *Device, a *Area, large bool) error {
	r.d = d
	if a != nil {
		a.Join()
		a.conns++
		r.area, r.pd, r.dom = a, a.pd, a.dom
		return nil
	}
	r.pd, r.dom = d.Shared.pd, d.Shared
	if !d.attr.SharesMemory && !large {
		return nil
	}
	pd, err := d.Verbs.AllocPD()
	if err != nil {
		return fmt.Errorf("alloc_pd on %s: %w", d.Verbs.Name(), err)
	}
	r.pd = pd
	if !d.attr.SharesMemory {
		r.dom = newDomain(d, pd, true)
	}
	return nil
}

// releaseDomain ends claimDomain's claim, after the queue pair is gone.
func (r *resources) releaseDomain() {
	switch {
	case r.area != nil:
		r.area.conns--
		r.area.Leave()
	case r.dom.own:
		r.dom.leave()
	case r.scoped():
		r.d.closed("dealloc_pd", r.pd.Close())
	}
}

// claimCompletions claims n entries of a completion queue.
func (r *resources) claimCompletions(n int) (err error) {
	if r.cq, err = r.d.completions(n); err == nil {
		r.entries = n
	}
	return err
}

// releaseCompletions ends claimCompletions' claim.
func (r *resources) releaseCompletions() { r.cq.Room += r.entries }

// queuePairAttr returns the attributes of a queue pair that uses r.
func (r *resources) queuePairAttr() verbs.QPInitAttr {
	return verbs.QPInitAttr{PD: r.pd, SendCQ: r.cq.cq, RecvCQ: r.cq.cq, MaxSGE: 1}
}

// scoped reports whether no other connection uses the protection domain, unless it shares an Area.
func (r *resources) scoped() bool { return r.pd != r.d.Shared.pd }

// private reports whether the memory to receive into and to send from is the connection's, or its
// Area's, and not the loop's.
func (r *resources) private() bool { return r.dom.own }

// exposed reports whether the queue pair can reach an owner's memory.
func (r *resources) exposed() bool { return r.area != nil }

// sharedArea reports whether peers of other connections can reach memory that is registered in the
// protection domain.
func (r *resources) sharedArea() bool { return r.area.shared() }

// recvPool returns the pool of receives for messages of n bytes, and joins it.
func (r *resources) recvPool(n int) (*recvPool, error) { return r.dom.recvPool(n) }

// poolOf returns the pool that b, a receive, belongs to.
func (r *resources) poolOf(b *memory.Chunk) *recvPool { return r.dom.recv[b.Size()] }

// sinks returns the memory that large messages are read into.
func (r *resources) sinks() *memory.RegionCache { return r.dom.sinks }

// sendChunk returns memory to send n bytes from. beyond: even more than the budget allows.
func (r *resources) sendChunk(n int, beyond bool) (*memory.Chunk, error) {
	a := r.dom.SendArena(n)
	if beyond {
		return a.GetBeyond()
	}
	return a.Get()
}

// sendsInPlace returns the domain that makes regions of messages where they are. Not ok: the device
// sends only from its registered memory.
func (r *resources) sendsInPlace() (pd verbs.Registrar, ok bool) {
	pd, ok = r.dom.pd.(verbs.Registrar)
	return pd, ok
}

// registrar returns the protection domain if it can register memory of the Go heap.
func (r *resources) registrar() (reg verbs.Registrar, ok bool) {
	reg, ok = r.pd.(verbs.Registrar)
	return reg, ok
}

// deregister frees memory that the registrar registered. Nothing that is posted names it.
func (r *resources) deregister(mr *verbs.MR) { _ = r.d.Verbs.Free(mr) }

// newRegions returns an empty cache of regions that the peer can read.
func (r *resources) newRegions(b *memory.Budget) *memory.RegionCache {
	return memory.NewRegionCache(r.d.Verbs, r.pd, verbs.RemoteRead, b, true)
}

// reclaim frees a private domain, or a device, that has no other use: a message was returned after
// the connection was over.
func (r *resources) reclaim() {
	r.dom.vanish()
	r.d.vanish()
}
