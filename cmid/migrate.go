package cmid

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// Migrate is rdma_migrate_id(3): the identifier's events come from channel to from now on. Events
// that were not fetched yet move with it, in order. So does the identifier of a request that was
// not fetched yet, with its own events; the kernel would leave these behind. The identifier of a
// request that was fetched stays where it is, and must be migrated separately.
//
// Called on the goroutine that both channels belong to: they share a loop, or the caller serves the
// loops of both. For channels of two goroutines see Detach. A queue pair, its memory and its
// completions stay where they were made, so keep the old channel, and serve it, until the queue
// pair is gone. ErrNotSupported where the device cannot; EBUSY while a command is in progress.
func (id *ID) Migrate(to *Channel) error {
	if err := id.judgeCall(states.OpMigrateID, "migrate_id"); err != nil {
		return err
	}
	from := id.ch
	if from == to {
		return nil
	}
	d, err := id.detach()
	if err != nil {
		return err
	}
	if err = to.attach(d); err == nil {
		return nil
	}
	if from.attach(d) != nil {
		d.Destroy() // neither has room for it
	}
	return id.callFailed("migrate_id", err)
}

// Detached is an identifier between two channels. It is on no loop, no event is delivered for it,
// and its ID must not be used. The holder of the Detached owns the identifier, and must pass it to
// Attach or destroy it.
type Detached struct {
	id     *ID
	driver DriverID // the ID's, which is nil while detached
	inst   DetachedInstance
	queue  []queuedThere
	over   bool
}

// queuedThere is an event of a detached identifier that was not fetched yet.
type queuedThere struct {
	queued
	child *Detached // the request's identifier, if it is a ConnectRequest
}

// Detach is the first half of rdma_migrate_id(3) between channels of two goroutines: it takes the
// identifier of an unanswered request off its channel. The other half is Attach, on the other
// channel's goroutine. Passing the Detached from goroutine to goroutine passes the identifier.
// Events of the peer are delivered, or found, after Attach.
//
// EINVAL for an identifier in another state than ConnectRequested, or one for which a queue pair
// was made, because that would stay on its loop; ErrNotSupported where the device cannot. Then the
// identifier is where it was.
func (id *ID) Detach() (*Detached, error) {
	if err := id.judgeCall(states.OpMigrateID, "migrate_id"); err != nil {
		return nil, err
	}
	if id.state != states.ConnectRequested || id.hadQP {
		const why = "only a request that nobody has answered, without a queue pair, can go to another goroutine"
		return nil, id.callFailed("migrate_id", &refusal{why, unix.EINVAL})
	}
	return id.detach()
}

func (id *ID) detach() (*Detached, error) {
	from := id.ch
	m, ok := id.driver.(Migrator)
	if !ok {
		return nil, id.callFailed("migrate_id", ErrNotSupported)
	}
	if p := id.commands.running; p != nil {
		return nil, id.callFailed("migrate_id", fmt.Errorf("%v is still in progress: wait for its answer: %w", p.Command.Op(), unix.EBUSY))
	}
	inst, err := m.Detach()
	if err != nil {
		return nil, id.callFailed("migrate_id", err)
	}
	d := &Detached{id: id, driver: id.driver, inst: inst}
	id.driver = nil
	delete(from.ids, id.handle)
	along := map[*ID]bool{id: true} // false: it could not come
	queue := from.queue
	from.queue = nil
	for _, q := range queue {
		request, ok := q.ev.(*ConnectRequest)
		comes, known := along[q.id]
		switch {
		case ok && request.Listener == id.handle:
			child, err := q.id.detach()
			along[q.id] = err == nil
			if err != nil { // its device has just gone, so it could not be answered
				if driver := q.id.driver; driver != nil { // else it is being destroyed
					q.id.driver = nil
					_ = driver.Do(&DestroyID{})
				}
				from.removeID(q.id)
				continue
			}
			d.queue = append(d.queue, queuedThere{q, child})
		case comes:
			d.queue = append(d.queue, queuedThere{q, nil})
		case !known:
			from.queue = append(from.queue, q)
		}
	}
	return d, nil
}

// Attach makes a detached identifier the channel's: the second half of rdma_migrate_id(3). Events
// that were not delivered yet are delivered by this channel, in order. When it fails (the channel
// is closed, or of another driver: EINVAL; the device has gone; there is no room), the identifier
// stays detached, and may be attached to another channel, such as the one it came from.
func (c *Channel) Attach(d *Detached) error {
	if d.over {
		return fmt.Errorf("migrate_id: the identifier was attached or destroyed before: %w", unix.EINVAL)
	}
	if err := c.attach(d); err != nil {
		return fmt.Errorf("migrate_id to %s: %w", c.name, err)
	}
	return nil
}

func (c *Channel) attach(d *Detached) error {
	if err := d.inst.Attach(c.inst); err != nil {
		return err
	}
	d.over = true
	id := d.id
	id.ch, id.driver = c, d.driver
	c.ids[id.handle] = id
	for _, q := range d.queue {
		if q.child != nil && c.attach(q.child) != nil {
			q.child.Destroy()
		}
		if q.id.driver != nil {
			c.sink(q.id, q.ev, q.answers)
		}
	}
	return nil
}

// Destroy is rdma_destroy_id(3) of an identifier that no channel has room for: its peer sees a
// connection that ends. It does not wait. The holder of the Detached may call it on any goroutine.
func (d *Detached) Destroy() {
	if d.over {
		return
	}
	d.over = true
	for _, q := range d.queue {
		if q.child != nil {
			q.child.Destroy()
		}
	}
	d.inst.Destroy()
}
