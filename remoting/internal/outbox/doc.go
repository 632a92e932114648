// Package outbox is what waits to be sent to one peer: records in frames, within a bound of bytes,
// and the senders that wait for room. The inbox is its other end, on another node.
package outbox
