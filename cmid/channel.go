package cmid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Sink receives the events of a Channel's identifiers, on the loop. answers is the command that ev
// answers, nil if ev answers none. The Sink, or the receiver of ev, calls answers.Answer.
type Sink func(id *ID, ev Event, answers *Pending)

// Channel is an rdma_event_channel: identifiers of one driver on one loop, and their events in one
// FIFO.
//
// All methods belong to the loop's goroutine. A channel of OpenChannel has its own loop: any
// goroutine may call its methods, but calls must not overlap.
type Channel struct {
	loop *eventloop.Loop
	own  bool // OpenChannel made the loop
	inst Instance
	name string
	sink Sink
	ids  map[Handle]*ID

	handles *atomic.Uint64 // the last handle

	queue []queued // events not yet fetched by GetEvent
}

type queued struct {
	id      *ID
	ev      Event
	answers *Pending
}

// allHandles numbers identifiers over the whole process, so that a handle is never reused, whatever
// driver or loop made it.
var allHandles atomic.Uint64

// NewChannel opens d on l; every event goes to sink. handles, for simulations, numbers the
// identifiers of all channels that it is given to. Without it they are numbered over the process.
func NewChannel(l *eventloop.Loop, d Driver, sink Sink, handles ...*atomic.Uint64) (*Channel, error) {
	c := &Channel{
		loop: l, name: d.Name(), sink: sink, ids: make(map[Handle]*ID),
		handles: cmp.Or(optional.Value(handles), &allHandles),
	}
	inst, err := d.Open(l, (*upcalls)(c))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Name(), err)
	}
	c.inst = inst
	l.OnGoexit(c.destroyAll)
	return c, nil
}

// destroyAll destroys all identifiers of a loop that a callback has ended: each gets Closed with
// err.
func (c *Channel) destroyAll(err error) {
	for _, h := range slices.Sorted(maps.Keys(c.ids)) {
		id := c.ids[h]
		if id == nil {
			continue // the end of another one has destroyed it
		}
		if id.driver != nil {
			id.Do(&DestroyID{}, nil)
		}
		destroyed := id.commands.takeRunning()
		c.sink(id, id.closedEvent(err), destroyed)
	}
}

// OpenChannel is rdma_create_event_channel(3): it opens d on a private loop, which runs inside
// GetEvent. Put FD into any epoll, and call GetEvent until EAGAIN when it is readable. GetEvent
// also sends posted work requests and collects completions. So poll the completion queues, or let
// notify do it, after each call (also after EAGAIN) and before waiting for FD.
func OpenChannel(d Driver) (*Channel, error) {
	l, err := eventloop.New(eventloop.Config{Name: d.Name()})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Name(), err)
	}
	c, err := NewChannel(l, d, nil)
	if err != nil {
		return nil, errors.Join(err, l.Shutdown(context.Background()))
	}
	c.own = true
	c.sink = func(id *ID, ev Event, answers *Pending) { c.queue = append(c.queue, queued{id, ev, answers}) }
	return c, nil
}

// FD returns a descriptor that is readable when GetEvent has something to do. It belongs to the
// channel. EINVAL if the channel is on a caller's loop.
func (c *Channel) FD() (int, error) {
	if !c.own {
		return -1, unix.EINVAL
	}
	return c.loop.FD()
}

// GetEvent is rdma_get_cm_event(3) on a non-blocking channel: the next event and its identifier,
// EAGAIN when there is none. Events need no acknowledgement. Events of a destroyed identifier are
// not delivered.
func (c *Channel) GetEvent() (Event, *ID, error) {
	if !c.own {
		return nil, nil, unix.EINVAL
	}
	if len(c.queue) == 0 {
		if err := c.loop.Turn(); err != nil {
			return nil, nil, err
		}
	}
	if len(c.queue) == 0 {
		c.queue = nil // an idle channel keeps no memory
		return nil, nil, unix.EAGAIN
	}
	q := c.queue[0]
	c.queue = c.queue[1:]
	q.answers.Answer(q.ev)
	return q.ev, q.id, nil
}

// CreateID is rdma_create_id(3). The port space determines whether its queue pair is for datagrams.
// That of PortSpaceIB is not: see CreateIDFor.
func (c *Channel) CreateID(ps PortSpace) (*ID, error) {
	return c.CreateIDFor(&AddrInfo{PortSpace: ps})
}

// CreateIDFor is rdma_create_ep(3)'s first step: an identifier of ai's port space whose queue pair
// is of ai's type, as LookupAddrInfo returns them. The rest of ai is ignored. A port space or type
// that is zero follows from the other. If both are zero, or ai is nil, the identifier is a reliable
// one of PortSpaceTCP. PortSpaceIB alone has both types: RC, unless ai has UD. EPROTONOSUPPORT for
// types that no device here has (UC, XRC, raw packets), EINVAL for a type that the port space does
// not have.
func (c *Channel) CreateIDFor(ai *AddrInfo) (*ID, error) {
	h := Handle(c.handles.Add(1))
	var d DriverID
	ps, t, err := ai.portSpaceAndQPType()
	if err == nil {
		d, err = c.inst.CreateID(h, ps, t)
	}
	if err != nil {
		f := FailureBase{EventBase: EventBase{ID: h}, Op: "create_id on " + c.name, Err: err, Remedy: createRemedy(err)}
		return nil, &CommandFailed{f}
	}
	var flavor states.Flavor
	if t == QPTypeUD {
		flavor = states.UD
	}
	return c.addID(d, ps, flavor, states.Idle), nil
}

// createRemedy returns the remedy for errors of CreateID and CreateIDFor.
func createRemedy(err error) string {
	switch {
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return "every device has PortSpaceTCP with QPTypeRC; datagrams are InfiniBand's and RoCE's"
	case errors.Is(err, unix.EINVAL):
		return "PortSpaceTCP has RC, PortSpaceUDP has UD, PortSpaceIB has both: the type follows from the port space"
	}
	return errnoRemedy(states.OpCreateQP, err)
}

func (c *Channel) addID(d DriverID, ps PortSpace, flavor states.Flavor, s states.State) *ID {
	id := &ID{ch: c, driver: d, handle: d.Handle(), ps: ps, flavor: flavor, state: s, born: c.loop.Now()}
	id.history.add(Transition{State: s})
	c.ids[id.handle] = id
	return id
}

// ID returns an identifier, nil when it is gone.
func (c *Channel) ID(h Handle) *ID { return c.ids[h] }

// Len returns the number of identifiers.
func (c *Channel) Len() int { return len(c.ids) }

// Strangers counts the connections to this channel's listeners that ended without a request in the
// device's protocol: a browser, a health check, a port scan, or a peer that was rejected before its
// request, because the device had no room for it. 0 where the device does not see them. Any
// goroutine.
func (c *Channel) Strangers() uint64 {
	if s, ok := c.inst.(StrangerCounter); ok {
		return s.Strangers()
	}
	return 0
}

// Enclosed reports whether nothing that this channel's identifiers send leaves the process. Any
// goroutine.
func (c *Channel) Enclosed() bool {
	e, ok := c.inst.(Enclosed)
	return ok && e.Enclosed()
}

// Devices is rdma_get_devices(3).
func (c *Channel) Devices() []verbs.Device { return c.inst.Devices() }

// Close is rdma_destroy_event_channel(3): it destroys every identifier left, without events, and
// closes the driver.
func (c *Channel) Close() error {
	err := c.inst.Close()
	for h, id := range c.ids {
		id.driver = nil
		delete(c.ids, h)
	}
	c.queue = nil
	if c.own {
		err = errors.Join(err, c.loop.Shutdown(context.Background()))
	}
	return err
}

// removeID drops an identifier and its queued events: nothing is delivered after rdma_destroy_id.
func (c *Channel) removeID(id *ID) {
	delete(c.ids, id.handle)
	kept := c.queue[:0]
	for _, q := range c.queue {
		if q.id != id {
			kept = append(kept, q)
		}
	}
	c.queue = kept
}

// upcalls is the Channel as its driver sees it.
type upcalls Channel

// NewHandle returns a handle that was never used before.
func (u *upcalls) NewHandle() Handle { return Handle(u.handles.Add(1)) }

// Event handles an event of h.
func (u *upcalls) Event(h Handle, ev *DriverEvent) {
	c := (*Channel)(u)
	id := c.ids[h]
	if id == nil {
		if ev.Kind == states.KindConnectRequest {
			// its listener has just gone, so it would never be answered
			_ = ev.Child.Do(&DestroyID{})
		}
		return
	}
	id.handleEvent(ev)
}

// Done ends a command that the driver had answered with ErrPending.
func (u *upcalls) Done(h Handle, err error) {
	c := (*Channel)(u)
	if id := c.ids[h]; id != nil {
		id.commands.takeRunning().finish(err)
	}
}
