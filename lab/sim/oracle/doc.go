// Package oracle judges what a simulated world does. Each oracle is a ledger: the workload enters
// what it asked for and what is reported to it, and the ledger says what cannot be.
//
//   - [Identifiers]: the states of each identifier, its events, and one answer for each command.
//   - [Messages]: each message in order, once, with its bytes, and its reported fate is true.
//   - [Calls]: each call has one true outcome, in time; and [Items], the items of the streams of some.
//   - [Pipes]: streams of bytes.
//   - [Posts]: messages and watches between actors of nodes that come and go.
//   - [Grants]: the bytes of granted memory, Reads, Writes and atomic operations.
//   - [Bounds]: what grows stays within its limit.
//   - [Isolation]: a connection that behaves lives, and gets on.
//   - [Liveness]: each answer comes in time.
//   - [Returned]: at a quiet moment, while the program lives, all that was taken is returned.
//
// The ledgers are pure: no goroutine, no clock, no input but calls. Time is passed in, counted from
// the world's beginning. They know nothing of actors and devices: whoever calls names identifiers,
// connections and senders by strings that are the same in each run of a seed.
//
// # Ownership
//
// A ledger is used by one goroutine at a time. Its verdicts come in an order that depends only on
// the calls.
package oracle

import "fmt"

// Fail gets the verdicts. Each is a sentence that names what was violated, and where.
type Fail func(format string, args ...any)

// some prints the first few of many.
func some[T any](all []T) string {
	const most = 5
	if len(all) <= most {
		return fmt.Sprint(all)
	}
	return fmt.Sprintf("%v and %d more", all[:most], len(all)-most)
}
