// Package datapath moves the messages of connections: from a Send to the queue pair, and from a
// completion to the owner. It is built on the verbs and knows no actors: it reports to one
// interface, Identifier, which the actor of an rdma_cm_id implements.
//
//	   Submit     sending.go, next.go         Identifier.Deliver
//	     │                                            ▲
//	   offers     offers.go                       arrivals   arrivals.go
//	     │                                            │
//	Device.postMessage  device.go               Conn.Receive  receiving.go
//	     │                                            │
//	   flight     inflight.go  ◄─ completions.go ─►  recvPool  prepost.go
//	     ▼                                            ▲
//	queue pair ──────────────── the peer ──────── queue pair
//
// A Loop is shared by the connections of one event loop: for each device its completion queues,
// protection domains and receive buffers, and the memory for messages (package memory), with the
// connections that wait for some of it (share.go).
//
// A Conn is one connection's data path. Its lifetime is connState's diagram (connstate.go). Which
// posting is next follows from a few counts alone (next.go).
//
// # Concerns
//
// A Conn is put together from structs, one for each concern:
//
//	sending     sending.go     what is sent; it contains the next four
//	sendQueue   sendqueue.go   messages and operations that wait for credits or room
//	flight      inflight.go    postings that the device has not completed
//	sizes       sizes.go       how large messages may be, in either direction
//	offers      offers.go      large messages that the peer reads
//	intake      receiving.go   what is received; it contains the next four
//	arrivals    arrivals.go    messages that wait for the owner, and Reads of the peer's offers
//	resizing    resize.go      receives that change their size
//	membership  person.go      its part of what its person's connections occupy
//	relief      relief.go      credits for a peer that would stall
//	resources   resources.go   its part of the device
//	heartbeat   keepalive.go   silence of the peer
//	ending      ending.go      the goodbye, and the cause of the end
//	security    secured.go     records and frames of a secured connection
//	traffic     traffic.go     counters
//
// Small ones get the values that they need. sending, intake, offers, arrivals, resizing and
// security know their Conn, whose other parts they use: a message that arrives has the peer's
// credits. Methods of a part that belong to another concern are in that concern's file, such as
// sending.postBundle in bundling.go. Methods of Conn for a concern begin with its name where they
// are not of the package's interface: goodbyeResume, queuePairFailed.
//
// state.go has the types of the loop and the device. next.go (which posting is next), share.go
// (which connection may receive) and negotiate.go (which messages are sent directly) decide without
// acting. conn.go takes a connection from New to Release, and overlooked.go through its first
// message.
//
// # Messages
//
// An Outgoing and an Inbound are parts of the upper layer's value for a message (Of points back),
// so that a message is one allocation, and none if a returned one is used again. An Outgoing is the
// connection's from Submit until SendFailed, or until its memory has returned to the pool. An
// Inbound is its receiver's from Deliver until Consumed, which gives the peer its credit.
//
// # Goroutines
//
// Everything belongs to the loop's goroutine, and nothing is locked. The exceptions are Pooled,
// Init and the fields of an Outgoing before it is submitted. A connection continues after a call of
// Identifier, so it is released in a later turn.
//
// # Errors
//
// A message that was not sent is reported with the reason (ErrQueueFull, ErrTooLarge, ErrFlushed).
// The cause of a connection's end goes to Identifier.BreakOff once: the peer's breach of the
// protocol, the queue pair's failure (QueuePairError), silence (LostError). A resource that is
// missing when a connection is made is a ResourceError.
//
// # Limitations
//
// A connection has one queue pair, and stays on one loop. Registered memory is not shared between
// loops.
package datapath
