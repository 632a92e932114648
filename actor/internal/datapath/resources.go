package datapath

import (
	"fmt"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/verbs"
)

// resources is the part of its device that a connection uses besides its queue pair: a protection
// domain, memory to receive into and to send from, and entries of a completion queue. Other code
// only reads its fields.
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
// (its Area).
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
		r.dom.leavePrivate()
	case r.hasOwnDomain():
		r.d.logCloseError("dealloc_pd", r.pd.Close())
	}
}

// claimCompletions claims n entries of a completion queue.
func (r *resources) claimCompletions(n int) (err error) {
	if r.cq, err = r.d.queueWithRoom(n); err == nil {
		r.entries = n
	}
	return err
}

// hasOwnDomain reports whether no other connection uses the protection domain, unless it shares an
// Area.
func (r *resources) hasOwnDomain() bool { return r.pd != r.d.Shared.pd }

// poolOf returns the pool that b, a receive, belongs to.
func (r *resources) poolOf(b *memory.Chunk) *recvPool { return r.dom.recv[b.Size()] }

// sendChunk returns memory to send n bytes from. beyond: even more than the budget allows.
func (r *resources) sendChunk(n int, beyond bool) (*memory.Chunk, error) {
	a := r.dom.SendArena(n)
	if beyond {
		return a.GetBeyond()
	}
	return a.Get()
}

// heapRegistrar returns the protection domain if it can register memory of the Go heap.
func (r *resources) heapRegistrar() (reg verbs.Registrar, ok bool) {
	reg, ok = r.pd.(verbs.Registrar)
	return reg, ok
}
