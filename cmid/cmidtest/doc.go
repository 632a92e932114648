// Package cmidtest is a device in memory, the twin of a real one, as net/http/httptest is a server:
// what users test with.
//
// A [Fabric] is a network of hosts with devices and addresses. Its Driver plays InfiniBand (as RoCE
// does it: padded private data, a reply that owes an RTU, disconnects that are answered, timewait)
// or iWARP (exact private data, both sides established and disconnected at once). What goes wrong
// is scripted: Silence, Drop, Delay, Reorder, Disconnect, RemoveDevice, RunOut; between hosts Cut
// and Heal; and for the programs of one, Host.Freeze, Thaw and Crash. [Fabric.Missed] lists what
// was asked for and has not happened.
//
// iWARP is soft-iWARP's, whose Connect waits for TCP and fails when nobody listens or answers, and
// may be repeated. With Config.Embedded it is package iwarp's: such a Connect ends in Rejected
// with status -111 or, after 10 s, in Unreachable, and costs the identifier; both sides are told
// the depths (up to 128) that they serve and may use; there are 248 bytes of private data, not
// 251; 127.0.0.1 is an address of the first device; a backlog is TCP's: it has room for one
// request more, and turns nobody away, for who finds it full tries again; there are no datagram
// identifiers.
//
// Queue pairs do Sends, Writes and Reads. InfiniBand completes a Send or a Write when the peer has
// acknowledged it, tells the requester of an access that was refused (StatusRemAccess), and leaves
// the disconnect to the owners. iWARP completes both when TCP has them; a target that refuses ends
// the connection, and both sides are Disconnected with what was wrong.
//
// On InfiniBand a Send may have immediate data, and datagram identifiers have queue pairs: address
// handles by IP address as on RoCE v2, 1,024 bytes, a routing header in front, groups of IPv4 that
// reach every member on the Fabric. A datagram that finds no receive, or one that is too short, or
// another queue key, is dropped.
//
// What the twin plays is held to Linux by package conformance, which runs on it as on every driver.
//
// # Ownership
//
// A Fabric's methods may be called by any goroutine. Everything else is the loop's that opened the
// Driver; a Fabric has no goroutine of its own, and knows no time but its loops'. Inside a
// testing/synctest bubble, or on eventlooptest's clock, time is virtual.
//
// # Ordering
//
// Messages between two loops arrive in the order in which they were sent, in a later turn of the
// receiver's, also when sender and receiver share a loop; a delay never lets one overtake another.
// With one Seed and one loop every run is the same.
//
// # Errors
//
// Errnos, reject reasons and statuses are the kernel's. Test code that asks for something
// impossible (a malformed address, a device added twice) panics.
//
// # Limitations
//
// A message of a queue pair that Drop or Silence has lost is not sent again: InfiniBand gives up
// after 17 s, and iWARP's stream stands still. Over a link that was Cut messages are repeated, and
// given up, as transports do. A Read is answered as soon as it comes, so that nobody finds a
// target's queue full. There are no AF_IB addresses, no routers and no fragmentation. On iWARP,
// Embedded or not, ResolveAddr asks the neighbour, the accepting side is established without
// hearing from its peer, the disconnecting side is disconnected at once, and a connection whose
// peer falls silent stays: it is given up only over a link that is cut, with something to
// acknowledge.
package cmidtest
