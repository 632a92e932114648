package datapath

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// Area is a protection domain, and the memory for one-sided operations that is registered in it.
// Its users are identifiers, one or those that share it, from before their queue pairs are made,
// and the connections whose queue pairs are in it. It ends with the last of them. Loop goroutine.
type Area struct {
	d       *Device
	pd      verbs.PD
	dom     *domain // what its connections receive into and send from
	users   int
	conns   int // of the users
	regions []region
}

// NewArea makes one on a device, with one user.
func (l *Loop) NewArea(dev verbs.Device) (*Area, error) {
	d := l.deviceOf(dev)
	pd, err := d.Verbs.AllocPD()
	if err != nil {
		return nil, fmt.Errorf("alloc_pd on %s: %w", d.Verbs.Name(), err)
	}
	a := &Area{d: d, pd: pd, dom: d.Shared, users: 1}
	if !d.attr.SharesMemory {
		a.dom = newDomain(d, pd, true)
	}
	d.areas++
	return a, nil
}

// On reports whether it is on dev, and that has not gone.
func (a *Area) On(dev verbs.Device) bool { return a.d.Verbs == dev && !a.d.removed }

// Join notes one more user, which ends with Leave.
func (a *Area) Join() { a.users++ }

// isShared reports whether peers of other connections can reach the memory that is registered in
// it.
func (a *Area) isShared() bool { return a != nil && a.conns > 1 }

// Leave ends a user. The last one frees the memory, but memory that is still in use counts as a
// user, too.
func (a *Area) Leave() {
	if a.users--; a.users > 0 {
		return
	}
	for _, r := range a.regions {
		free := func() {
			a.d.claimBytes(-len(r.mr.Bytes))
			a.d.logCloseError("dereg_mr", a.d.Verbs.Free(r.mr))
		}
		if r.lease.markGone(a.d.l, func() { free(); a.Leave() }) {
			a.users++
		} else {
			free()
		}
	}
	if a.regions = nil; a.users > 0 {
		return
	}
	if a.dom.own {
		a.dom.leavePrivate()
	} else {
		a.d.logCloseError("dealloc_pd", a.pd.Close())
	}
	a.d.areas--
	a.d.closeUnused()
}

// Alloc registers n bytes, within Limits.Memory. lease tracks their users.
func (a *Area) Alloc(n int, access verbs.Access, lease *Lease) (*verbs.MR, error) {
	l := a.d.l
	if n > l.MemoryBudget {
		return nil, fmt.Errorf("%d more bytes of memory for one-sided operations would exceed the limit (Limits.Memory): %w", n, unix.ENOMEM)
	}
	mr, err := a.pd.Alloc(n, access)
	if err != nil {
		return nil, fmt.Errorf("reg_mr of %d bytes on %s: %w", n, a.d.Verbs.Name(), err)
	}
	a.d.claimBytes(n)
	a.regions = append(a.regions, region{mr, lease})
	return mr, nil
}

// claimBytes counts n bytes more.
func (d *Device) claimBytes(n int) {
	d.memory += n
	d.l.MemoryBudget -= n
}

// Free gives memory from Alloc back. Nothing that is posted may name it. After an error the device
// still has it.
func (a *Area) Free(mr *verbs.MR) error {
	n := len(mr.Bytes)
	if err := a.d.Verbs.Free(mr); err != nil && !a.d.removed {
		return fmt.Errorf("dereg_mr of %d bytes on %s: %w", n, a.d.Verbs.Name(), err)
	}
	a.regions = slices.DeleteFunc(a.regions, func(other region) bool { return other.mr == mr })
	a.d.claimBytes(-n)
	return nil
}
