package core

import (
	"math"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// access decides which memory a connection's work requests and its peer may use.
type access struct {
	pd       verbs.PD
	regions  *Regions
	withheld verbs.Access // from the peer, whatever a region allows
}

// denial is why a peer may not touch memory.
type denial uint8

const (
	allowed  denial = iota
	withheld        // from this peer
	badSTag
	foreign // of another protection domain
	noRight
	wraps
	outside
)

// checkPeer finds the n > 0 bytes from to of the region stag for a peer that wants right. A peer
// without any right does not learn which keys exist. In Go memory and in a region's addresses
// nothing wraps, so bounds are compared by subtraction.
func (a *access) checkPeer(stag uint32, to uint64, n uint32, right verbs.Access) (mr *verbs.MR, offset uint32, d denial) {
	mr = a.regions.find(stag)
	switch {
	case a.withheld&right != 0:
		return nil, 0, withheld
	case mr == nil:
		return nil, 0, badSTag
	case mr.PD != a.pd:
		return nil, 0, foreign
	case mr.Access&right == 0:
		return nil, 0, noRight
	case uint64(n-1) > math.MaxUint64-to:
		return nil, 0, wraps
	}
	off, size := to-mr.Addr, uint64(len(mr.Bytes))
	if off > size || uint64(n) > size-off {
		return nil, 0, outside
	}
	return mr, uint32(off), allowed
}

// isUsable reports whether mr is still this connection's, or shared, or nil.
func (a *access) isUsable(mr *verbs.MR) bool {
	if mr == nil || mr.PD == a.pd {
		return true
	}
	shared := a.regions.sharedPD()
	return shared != nil && mr.PD == shared
}

// invalidate revokes the key stag of a region at the peer's request, an op (RFC 5040 section 5.3).
// The region must be open to this peer.
func (a *access) invalidate(stag uint32, op wire.Opcode) *fault {
	mr := a.regions.find(stag)
	if mr == nil || mr.PD != a.pd || mr.Access&^a.withheld&(verbs.RemoteWrite|verbs.RemoteRead) == 0 {
		f := rdmapFault(wire.RDMAPProtection, 9, "%v of STag %#x, which is not a region open to this peer", op, stag)
		f.hit.recv = verbs.StatusRemInvReq
		return f
	}
	a.regions.invalidate(stag)
	return nil
}

// Regions is the table of the memory that peers may name by STag, which is both LKey and RKey of a
// region. The Conns of one device share one table, which belongs to their goroutine. The zero
// value is empty.
type Regions struct {
	// Shared is a domain whose regions the work requests of every Conn may name, but not its peer;
	// nil: none.
	Shared verbs.PD

	byTag map[uint32]region
}

// sharedPD returns Shared, or nil if r is nil.
func (r *Regions) sharedPD() verbs.PD {
	if r == nil {
		return nil
	}
	return r.Shared
}

type region struct {
	mr      *verbs.MR
	invalid bool // a peer took its key back
}

// Add registers mr under its LKey. False if that key is in use or cannot be one: 0 and 1 stand for
// "none" in empty messages.
func (r *Regions) Add(mr *verbs.MR) bool {
	if _, used := r.byTag[mr.LKey]; used || mr.LKey <= 1 {
		return false
	}
	if r.byTag == nil {
		r.byTag = make(map[uint32]region)
	}
	r.byTag[mr.LKey] = region{mr: mr}
	return true
}

// Remove forgets mr. False if it is not here.
func (r *Regions) Remove(mr *verbs.MR) bool {
	if r.byTag[mr.LKey].mr != mr {
		return false
	}
	delete(r.byTag, mr.LKey)
	return true
}

// find returns the region that a peer names; nil: none, or its key was taken back.
func (r *Regions) find(stag uint32) *verbs.MR {
	if r == nil {
		return nil
	}
	if e := r.byTag[stag]; !e.invalid {
		return e.mr
	}
	return nil
}

// invalidate takes back the key of a region that find has found.
func (r *Regions) invalidate(stag uint32) {
	e := r.byTag[stag]
	e.invalid = true
	r.byTag[stag] = e
}
