// Package perf measures the latency and bandwidth of a device between two processes, as
// ib_send_lat, ib_write_bw and the other programs of perftest do. It works at the level of verbs,
// without actors and their flow control.
//
// # Protocol
//
// A connection is one test, with one operation and one message size. The private data of the
// client's Connect is a request, and that of the server's Accept is an answer. A server that
// refuses gives the reason in the private data of its Reject. The test on the connection is one of
// these:
//
//   - latency of send: the client Sends, the server Sends as much back, in turn.
//   - latency of write: each side Writes into the other's memory and posts an empty Send after
//     it, in turn. (perftest polls memory until the last byte changes. The documentation of package
//     verbs explains why that is not a correct way to wait.)
//   - latency of read: the client Reads, one at a time.
//   - bandwidth of send: the client has up to Test.Depth messages in flight. The server answers
//     each quarter of that with an empty Send, once it has posted their receives again.
//   - bandwidth of write: the same, with an empty Send after each quarter, which the server
//     receives and answers.
//   - bandwidth of read: the client has up to Test.Depth Reads in flight.
//
// A client that Reads posts an empty Send each second, so that the server knows that the client is
// alive. The client ends the test by disconnecting.
//
// The latency of send and write is half of the round trip, and that of read is the whole round
// trip, as in perftest. Messages of up to DeviceAttr.MaxInline bytes are posted inline. All
// messages use the same memory, unless Plan.OwnMemory is set.
//
// # Ownership
//
// A Client and a Server each have a loop, which owns everything that they use. Call their methods
// on any other goroutine, but not on the loop's.
//
// # Ordering
//
// A client's runs follow one another. A server serves any number of clients concurrently.
//
// # Errors
//
// The error of a run names the step that failed. Use errors.Is to find the errno. A server reports
// each failed connection to Config.Complain and continues.
//
// # Limitations
//
// The memory that a client can make a server allocate is bounded by MaxMemory for one connection,
// and by serverMemory for all. Only reliable connections are measured.
package perf
