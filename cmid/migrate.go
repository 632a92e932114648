package cmid

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// Migrate is rdma_migrate_id(3): the identifier's events come from channel to from now on. Those that were not fetched yet go along,
// in order, and with a request the identifier that came with it; the kernel would leave that one behind. What was fetched stays where
// it is: migrate a request's identifier by itself.
//
// Called on the goroutine that both channels belong to: they share a loop, or have loops of their own and the caller serves both. A
// queue pair, its memory and its completions stay where they were made, so keep the old channel, and serve it, until the queue pair
// is gone. ErrNotSupported where the device cannot; EBUSY while a command is in progress.
func (id *ID) Migrate(to *Channel) error {
	if err := id.judge(states.OpMigrateID, "migrate_id"); err != nil {
		return err
	}
	from := id.ch
	if from == to {
		return nil
	}
	m, ok := from.inst.(Migrator)
	switch {
	case !ok:
		return id.callFailed("migrate_id", ErrNotSupported)
	case id.inFlight != nil:
		return id.callFailed("migrate_id", fmt.Errorf("%v is still in progress: wait for its answer: %w", id.inFlight.Op(), unix.EBUSY))
	}
	if err := m.Migrate(id.handle, to.inst); err != nil {
		return id.callFailed("migrate_id", err)
	}
	id.move(to)
	queue := from.queue
	from.queue = nil
	for _, q := range queue {
		request, ok := q.ev.(*ConnectRequest)
		if ok && request.Listener == id.handle {
			if m.Migrate(q.id.handle, to.inst) != nil { // its device has just gone: nobody could answer it
				_ = from.inst.Do(q.id.handle, &DestroyID{})
				from.forget(q.id)
				continue
			}
			q.id.move(to)
		}
		if q.id.ch == to {
			to.sink(q.id, q.ev, q.answers)
		} else {
			from.queue = append(from.queue, q)
		}
	}
	return nil
}

// move makes the identifier to's.
func (id *ID) move(to *Channel) {
	delete(id.ch.ids, id.handle)
	id.ch = to
	to.ids[id.handle] = id
}
