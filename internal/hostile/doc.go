// Package hostile is a peer that breaks the rules of iWARP: a table of exchanges, each malformed,
// out of order, too long, cut short, flooding or silent, and seeded mutations of good ones. It
// speaks raw TCP with bytes of its own, from wire's codecs where they are to be right. It knows
// nothing of tests: a program may throw it at any address.
//
//	x, _ := hostile.Find("Send with the wrong MSN")
//	got, err := x.Dial(ctx, "127.0.0.1:7174", hostile.Options{})
//
// # Ownership
//
// A Peer belongs to the goroutine that runs its exchange. An Exchange is never written to after
// the package's start and may be used by any number of goroutines.
//
// # Ordering
//
// An exchange writes what it has to, then reads until the other side ends the connection, then
// closes its own end.
//
// # Errors
//
// Dial tells when no TCP connection came about. Whatever happens later is in the Result: it is
// what the exchange is about.
//
// # Limitations
//
// What Want says holds for an owner that accepts every request, with Receives receives of
// ReceiveLen bytes posted once, and Depth as its IRD and ORD. IPv4 and IPv6 over net; no markers.
package hostile
