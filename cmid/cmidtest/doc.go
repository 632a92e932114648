// Package cmidtest has an in-memory device for tests, as net/http/httptest has a server. It behaves
// like a real device, and plays scripted faults.
//
// A [Fabric] is a network of hosts with devices and addresses. Its Driver plays InfiniBand or
// iWARP. InfiniBand is as on RoCE: private data is padded, a reply needs an RTU, disconnects are
// answered, and there is timewait. On iWARP private data is exact, and both sides are established
// and disconnected immediately.
//
// Faults are scripted: Silence, Drop, Delay, Reorder, Overlook, Disconnect, RemoveDevice, RunOut
// and RunShort. Cut and Heal act on the link between two hosts. Host.Freeze, Thaw and Crash act on
// the programs of one host. [Fabric.Missed] lists the scripted faults that have not happened.
//
// By default iWARP behaves like soft-iWARP, whose Connect waits for TCP. That Connect fails when
// there is no listener or no answer, and may be repeated. With Config.Embedded iWARP behaves like
// package iwarp:
//   - A Connect to which nobody listens or answers ends in Rejected with status -111 or, after 10
//     s, in Unreachable. The identifier cannot be used again.
//   - Established reports to both sides the depths (up to 128) that they serve and may use.
//   - There are 248 bytes of private data, not 251.
//   - 127.0.0.1 is an address of the first device.
//   - The backlog is that of TCP. It has room for one request more than was asked for, and rejects
//     none: a request that finds it full is repeated.
//   - Messages that had arrived before a connection was lost are delivered before its end. They
//     wait for receives for up to 30 s, which begin anew with each that is received. InfiniBand
//     and soft-iWARP drop them.
//   - There are no datagram identifiers.
//
// Queue pairs do Sends, Writes and Reads. InfiniBand completes a Send or a Write when the peer has
// acknowledged it, reports to the requester an access that was refused (StatusRemAccess), and
// leaves the disconnect to the owners. iWARP completes a Send or a Write when TCP has taken it. A
// target that refuses ends the connection there, and both sides get Disconnected with the cause.
//
// On InfiniBand a Send or a Write may have immediate data, and datagram identifiers have queue
// pairs. They have address handles by IP address as on RoCE v2, 1,024 bytes, a routing header in front, and
// groups of IPv4 that reach every member on the Fabric. A datagram is dropped when it finds no
// receive, one that is too short, or another queue key.
//
// Package conformance compares the twin with Linux: it runs on the twin as on every driver.
//
// # Ownership
//
// Any goroutine may call a Fabric's methods. Everything else belongs to the loop that has opened
// the Driver. A Fabric has no goroutine, and its time is that of its loops. Inside a
// testing/synctest bubble, or on eventlooptest's clock, time is virtual.
//
// # Ordering
//
// Messages between two loops arrive in the order in which they were sent, also with delays. They
// arrive in a later turn of the receiver's, also when sender and receiver share a loop. With one
// Seed and one loop every run is the same.
//
// # Errors
//
// Errnos, reject reasons and statuses are the kernel's. A Fabric panics when a call asks for the
// impossible, such as a malformed address or a device of a name that is taken.
//
// # Limitations
//
// A message of a queue pair that Drop or Silence has lost is not sent again: InfiniBand gives up
// after 17 s, and iWARP's stream stands still. Over a link that is Cut messages are repeated, and
// given up, as transports do. A Read is answered as soon as it comes, so a target's queue is never
// full. There are no AF_IB addresses, no routers and no fragmentation.
//
// On iWARP, Embedded or not, ResolveAddr needs an answer from the neighbour. The accepting side is
// established without waiting for its peer, and the disconnecting side is disconnected
// immediately. A connection whose peer falls silent stays. It is given up only when its link is
// cut and something is not acknowledged.
package cmidtest
