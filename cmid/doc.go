// Package cmid is one rdma_cm_id, usable without actors: commands down, events up, addresses,
// private data, errors, and the seam ([Driver]) that a kind of device implements.
//
// Names are librdmacm's: rdma_bind_addr is [ID.BindAddr] as a plain call and [BindAddr] as a
// message, RDMA_CM_EVENT_ADDR_RESOLVED is [AddrResolved]. What has no name there is marked (ours).
// Every command passes the state machine of package states before a device sees it.
//
// # Ownership
//
// A [Channel] and its identifiers belong to one loop's goroutine. A channel from [OpenChannel]
// brings its own loop, which runs inside [Channel.GetEvent], and belongs to whoever calls it. A
// Command belongs to the identifier until it was answered. An Event's private data is the
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
// # Limitations
//
// InfiniBand addresses (AF_IB) can be carried, but only devices that have them accept them.
// rdma_create_ep is not here: LookupAddrInfo, Channel.CreateIDFor and the commands are what it is
// made of. Shared receive queues are a device's (verbs.Device.CreateSRQ), not an identifier's.
package cmid
