package core

import "github.com/rdmactor/rdmactor/verbs"

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
