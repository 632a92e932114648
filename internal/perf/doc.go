// Package perf measures latency and bandwidth of a device between two processes, as perftest's
// ib_send_lat, ib_write_bw and their like do: at the level of verbs, without actors and without
// their flow control.
//
// # Protocol
//
// A connection is one test: one operation, one size. The client's Connect carries a Request in its
// private data, the server's Accept an Answer; a server that will not says why in the private data
// of its Reject. What follows on the connection:
//
//   - latency of send: the client Sends, the server Sends as much back, in turn.
//   - latency of write: each side Writes into the other's memory and posts an empty Send behind it,
//     in turn. (perftest watches the last byte change instead; package verbs says why that is no
//     way to wait.)
//   - latency of read: the client Reads, one at a time.
//   - bandwidth of send: the client has up to Request.Depth messages on their way. The server
//     receives, and answers each quarter of that with an empty Send, once their buffers are posted
//     again.
//   - bandwidth of write: the same, with an empty Send behind each quarter, which is what the
//     server receives and answers.
//   - bandwidth of read: the client has up to Request.Depth Reads on their way.
//
// A client that reads posts an empty Send each second, so that the server knows it alive. The
// client ends the test by disconnecting.
//
// Latency of send and write is half of the round trip, of read the whole, as perftest prints them.
// Up to DeviceAttr.MaxInline bytes are posted inline. All messages come from, and Writes and Reads
// go to, the same memory, unless Plan.OwnMemory says otherwise.
//
// # Ownership
//
// A Client and a Server have a loop of their own, which everything of theirs belongs to; their
// methods are for any other goroutine.
//
// # Ordering
//
// A client's runs follow one another. A server serves any number of clients at once.
//
// # Errors
//
// A run's error says what was under way; errors.Is finds the errno. A server reports each failed
// connection to Config.Complain and goes on.
//
// # Limitations
//
// What a client may make a server hold is bounded by MaxMemory for one connection and serverMemory
// for all. Reliable connections only.
package perf
