// Package oracle judges the behaviour of a simulated world. Each oracle is a ledger: the workload
// enters its requests and the reports that it receives, and the ledger reports contradictions.
//
//   - [Identifiers]: the states of each identifier, its events, and one answer for each command.
//   - [Messages]: each message in order, once, with its bytes, and its reported fate is true.
//   - [Calls]: each call has one true outcome, in time; and [Items], the items of some calls' streams.
//   - [Pipes]: streams of bytes.
//   - [Posts]: messages and watches between actors of nodes that come and go.
//   - [Grants]: the bytes of granted memory, Reads, Writes and atomic operations.
//   - [Bounds]: quantities stay within their limits.
//   - [Isolation]: a well-behaved connection lives, and makes progress.
//   - [Liveness]: each answer comes in time.
//   - [Returned]: at a quiet moment, while the program lives, all resources are returned.
//
// The ledgers are pure: they have no goroutine, no clock, and no input but calls. Time is an
// argument, counted from the world's beginning. They do not depend on actors or devices: callers
// name identifiers, connections and senders by strings that are the same in each run of a seed.
//
// # Ownership
//
// A ledger is used by one goroutine at a time. The order of its verdicts depends only on the calls.
package oracle

import "fmt"

// Fail receives the verdicts. Each is a sentence that names the violation, and where it was found.
type Fail func(format string, args ...any)

// firstFew prints the first few of many.
func firstFew[T any](all []T) string {
	const most = 5
	if len(all) <= most {
		return fmt.Sprint(all)
	}
	return fmt.Sprintf("%v and %d more", all[:most], len(all)-most)
}
