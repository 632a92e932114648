// Package endpoint is what this project's programs on package cmid's plain calls have in common: an
// event channel that is waited for with poll(2), a listener, and an identifier with its queue pair
// and memory.
//
// # Ownership
//
// Everything belongs to the goroutine that has opened the channel, or to the channel's loop.
// Channel.Stop is for any goroutine.
//
// # Errors
//
// They are those of cmid and verbs: errors.Is finds the errno.
package endpoint
