// Package endpoint is the common part of this project's programs that use package cmid's plain
// calls: an event channel whose owner waits with poll(2), a listener, and an identifier with its
// queue pair and memory.
//
// # Ownership
//
// Everything belongs to the goroutine that has opened the channel, or to the channel's loop. Any
// goroutine may call Channel.Stop.
//
// # Errors
//
// Errors are those of packages cmid and verbs. Use errors.Is to find the errno.
package endpoint
