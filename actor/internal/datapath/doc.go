// Package datapath moves the messages of connections: from a Send to the queue pair, and from a
// completion to the owner. It stands on the verbs and knows no actors: what it has to report goes
// to one interface, Identifier, which the actor of an rdma_cm_id implements.
//
//	   Submit     sending.go, next.go         Identifier.Deliver
//	     │                                            ▲
//	   offers     offers.go                       arrivals   arrivals.go
//	     │                                            │
//	Device.post   device.go                     Conn.Receive  receiving.go
//	     │                                            │
//	   flight     inflight.go  ◄─ completions.go ─►  recvPool  prepost.go
//	     ▼                                            ▲
//	queue pair ──────────────── the peer ──────── queue pair
//
// A Loop is what the connections of one event loop share: for each device its completion queues,
// protection domains and receive buffers, the memory for messages (package memory), and who waits
// for some of it (share.go).
//
// A Conn is one connection's data path. Its lifetime is connState's diagram (connstate.go). What it
// hands to the device next follows from a few counts alone (next.go).
//
// # Files
//
// At the bottom is what there is: state.go (all of a Loop, a Device and a Conn), connstate.go,
// messages.go, inflight.go, errors.go. Above it is what decides: next.go (what is sent next),
// share.go (who may receive), negotiate.go (what goes at once). Above that is what acts: the
// picture's files, onesided.go, conn.go (the connection from New to Release), overlooked.go (how it
// begins), ending.go and keepalive.go (how it ends).
//
// # Messages
//
// An Outgoing and an Inbound are parts of what the layer above has for a message (Of points back),
// so that a message is one allocation, and none where the last one came back. An Outgoing is the
// connection's from Submit until SendFailed, or until its memory went back to the pool. An Inbound
// is its receiver's from Deliver until Consumed, which gives the peer its credit.
//
// # Goroutines
//
// Everything belongs to the loop's goroutine, and nothing is locked. The exceptions are Pooled,
// Init and what an Outgoing has before it is submitted. A connection goes on behind a call of
// Identifier, so it is released in a turn of its own.
//
// # Errors
//
// A message that was not sent is reported with the reason (ErrQueueFull, ErrTooLarge, ErrFlushed).
// What ends the connection goes to Identifier.BreakOff once: the peer's breach of the protocol, the
// queue pair's failure (QueuePairError), silence (LostError). What cannot be had when it is made is
// a ResourceError.
//
// # Limitations
//
// One queue pair for a connection, one loop for its life. Registered memory is not shared between
// loops.
package datapath
