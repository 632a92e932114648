package iwarp

import (
	"bytes"

	"github.com/rdmactor/rdmactor/internal/hostile"
	"github.com/rdmactor/rdmactor/verbs"
)

// own is the regions of a node, and their part that a peer knows.
type own struct {
	known hostile.Regions
	other verbs.PD
	mrs   []*verbs.MR
	must  []*verbs.MR // must not change
}

const untouched = 0x11

// regions makes one of each kind.
func (a *arena) regions(n *node) *own {
	a.t.Helper()
	r := &own{}
	var err error
	if r.other, err = n.in.dev.AllocPD(); err != nil {
		a.t.Fatal(err)
	}
	add := func(pd verbs.PD, access verbs.Access) (hostile.Region, *verbs.MR) {
		mr := a.alloc(n, pd, a.regionLen, access)
		for i := range mr.Bytes {
			mr.Bytes[i] = untouched
		}
		r.mrs = append(r.mrs, mr)
		if access&verbs.RemoteWrite == 0 || pd == r.other {
			r.must = append(r.must, mr)
		}
		return hostile.Region{STag: mr.RKey, TO: mr.Addr, Len: uint32(len(mr.Bytes))}, mr
	}
	const all = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead
	pd := n.in.dev.PD()
	r.known.Both, _ = add(pd, all)
	r.known.ReadOnly, _ = add(pd, verbs.RemoteRead)
	r.known.WriteOnly, _ = add(pd, verbs.LocalWrite|verbs.RemoteWrite)
	r.known.Local, _ = add(pd, verbs.LocalWrite)
	r.known.Foreign, _ = add(r.other, all)
	var gone *verbs.MR
	r.known.Freed, gone = add(pd, all)
	r.must = append(r.must, gone)
	if err := n.in.dev.Free(gone); err != nil {
		a.t.Fatal(err)
	}
	r.mrs = r.mrs[:len(r.mrs)-1]
	return r
}

// free deregisters them. It checks that memory which no peer may write is unchanged.
func (a *arena) free(n *node, r *own) {
	a.t.Helper()
	for i, mr := range r.must {
		if bytes.Count(mr.Bytes, []byte{untouched}) != len(mr.Bytes) {
			a.t.Errorf("region %d, which no peer may write to, was written to", i)
		}
	}
	for _, mr := range r.mrs {
		if err := n.in.dev.Free(mr); err != nil {
			a.t.Error(err)
		}
	}
	if err := r.other.Close(); err != nil {
		a.t.Error(err)
	}
}
