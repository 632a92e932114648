// Package cmid has librdmacm's identifiers (rdma_cm_id) as plain calls, for programs with their own
// event loop: commands, events, addresses, private data and errors. Package actor is built on it.
// Each kind of device implements the interface [Driver].
//
// Names are librdmacm's: rdma_bind_addr is [ID.BindAddr] as a plain call and [BindAddr] as a
// message, RDMA_CM_EVENT_ADDR_RESOLVED is [AddrResolved]. What librdmacm has no name for is marked
// (ours). Every command passes the state machine of package states before a device sees it.
//
// # Ownership
//
// A [Channel] and its identifiers belong to one loop's goroutine. A channel from [OpenChannel] has
// its own loop, which runs inside [Channel.GetEvent]. It belongs to the goroutine that calls that.
// A Command belongs to the identifier until it was answered. An Event's private data is the
// receiver's.
//
// # Ordering
//
// Events of a channel are delivered in the order in which they happened. At most one command of an
// identifier waits for the device; events may overtake its answer. After [ID.Destroy] nothing of
// that identifier is delivered.
//
// # Errors
//
// A failing call returns a [Failure]: a typed event that is an error too. errors.Is finds the
// errno in it. docs/errors.md shows every message.
//
// A callback that ends the loop's goroutine (runtime.Goexit) ends the loop: every identifier is
// destroyed, and the Sink gets Closed with the [eventloop.GoexitError].
//
// # Limitations
//
// InfiniBand addresses (AF_IB) can be carried, but only devices that have them accept them. There
// is no rdma_create_ep: use LookupAddrInfo, Channel.CreateIDFor and the commands, of which it
// consists. Shared receive queues belong to a device (verbs.Device.CreateSRQ), not to an
// identifier.
package cmid
