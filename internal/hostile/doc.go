// Package hostile is a peer that breaks the rules of iWARP. It has a table of exchanges, each of
// which is malformed, out of order, too long, cut short, flooding or silent. It can also mutate
// good exchanges from a seed. It writes to TCP sockets, and uses package wire's codecs for the
// correct parts. It does not depend on package testing, so that a program may run it against any
// address.
//
//	x, _ := hostile.Find("Send with the wrong MSN")
//	got, err := x.Dial(ctx, "127.0.0.1:7174", hostile.Options{})
//
// # Ownership
//
// A Peer belongs to the goroutine that runs its exchange. An Exchange does not change after the
// package's start. Any number of goroutines may use it.
//
// # Ordering
//
// An exchange takes its steps, then reads until the other side ends the connection, then closes its
// end.
//
// # Errors
//
// An error of Dial means that there was no TCP connection. Everything later is in the Result,
// because it is the subject of the exchange.
//
// # Limitations
//
// Want assumes that the owner of the other side accepts every request, posts Receives receives of
// ReceiveLen bytes once, and uses Depth as its IRD and ORD. Addresses are IPv4 and IPv6 addresses
// of package net. MPA markers are not used.
package hostile
