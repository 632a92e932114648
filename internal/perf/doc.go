// Package perf measures latency and bandwidth of a device between two processes, as perftest's
// ib_send_lat, ib_write_bw and their like do: at the level of verbs, without actors and without
// their flow control.
//
// # Protocol
//
// A connection is one test: one operation, one size. The client's Connect carries a Request in its
// private data, the server's Accept an Answer; a server that refuses says why in the private data
// of its Reject. Then, on the connection:
//
//   - latency of send: the client Sends, the server Sends as much back, in turn.
//   - latency of write: each side Writes into the other's memory and posts an empty Send behind
//     it, in turn. (perftest polls memory until the last byte changes. The documentation of
//     package verbs says why that is not a correct way to wait.)
//   - latency of read: the client Reads, one at a time.
//   - bandwidth of send: the client has up to Request.Depth messages on their way. The server
//     answers each quarter of that with an empty Send, once it has posted their receives again.
//   - bandwidth of write: the same, with an empty Send behind each quarter. That Send is what the
//     server receives and answers.
//   - bandwidth of read: the client has up to Request.Depth Reads on their way.
//
// A client that reads posts an empty Send each second, so that the server knows that it is alive.
// The client ends the test by disconnecting.
//
// Latency of send and write is half of the round trip, and that of read is the whole, as perftest
// prints them. Messages of up to DeviceAttr.MaxInline bytes are posted inline. All messages use
// the same memory, unless Plan.OwnMemory says otherwise.
//
// # Ownership
//
// A Client and a Server have a loop each, and everything of theirs belongs to it. Their methods
// are for any other goroutine.
//
// # Ordering
//
// A client's runs follow one another. A server serves any number of clients at once.
//
// # Errors
//
// A run's error says what was under way, and errors.Is finds the errno. A server reports each
// failed connection to Config.Complain and goes on.
//
// # Limitations
//
// The memory that a client can make a server allocate is bounded by MaxMemory for one connection,
// and by serverMemory for all. Only reliable connections are measured.
package perf
