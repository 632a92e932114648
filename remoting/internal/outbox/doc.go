// Package outbox queues records for one peer: in frames, within a bound of bytes, with the senders
// that wait for room. The inbox is its other end, on another node.
package outbox
