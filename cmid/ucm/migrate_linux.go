package ucm

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
)

var _ cmid.Migrator = (*driverID)(nil)

// detached is an identifier that no instance has: the kernel still has it on the channel it came
// from, where nothing is reported of a request's identifier that was not answered, because it has
// no uid yet.
type detached struct {
	id   *driverID
	from *instance
}

// Detach takes the identifier out of its instance's tables. The kernel is not involved before
// Attach names the new channel.
func (id *driverID) Detach() (cmid.DetachedInstance, error) {
	in := id.in
	if id.away != nil {
		return nil, unix.EBUSY
	}
	in.removeDriverID(id)
	return &detached{id, in}, nil
}

// Attach is MIGRATE_ID. Unfetched requests go along, and leave their identifiers behind: see
// fetch.
func (d *detached) Attach(other cmid.Instance) error {
	to, ok := other.(*instance)
	if !ok || to.drv != d.from.drv || to.closed {
		return unix.EINVAL
	}
	id, dev := d.id, d.id.dev
	if to != d.from {
		if dev != nil && id.qp == nil {
			var err error
			if dev, err = to.findOrOpen(dev.ident); err != nil {
				return err
			}
		}
		if _, err := to.file.MigrateID(d.from.file, id.kid); err != nil {
			return err
		}
		id.in = to
		id.past = slices.DeleteFunc(id.past, func(f *uabi.File) bool { return f == d.from.file || f == to.file || f.Closed() })
		id.past = append(id.past, d.from.file)
		id.dev = dev
	}
	to.ids[id.h] = id
	if id.listening {
		to.listeners++
	}
	for _, g := range id.groups {
		to.groups[g.h] = g
	}
	_ = to.loop.Post(to.catchUp) // refused when the loop ends, and events no longer matter
	return nil
}

// Destroy is DESTROY_ID, which may wait. It fails immediately when the channel was closed: the
// identifier went with it.
func (d *detached) Destroy() {
	file, kid := d.from.file, d.id.kid
	d.from.lanes.destroys.runJob(&job{
		group: d.id.threadGroup(), peer: d.id.peer.Addr(),
		call: func() error { _, err := file.DestroyID(kid); return err },
		then: func(err error) {
			if err != nil {
				// refused when the loop ends, and the file is closed with it
				_ = d.from.loop.Post(func() { d.from.failIfDenied(err) })
			}
		},
	})
}
