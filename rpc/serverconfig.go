package rpc

import (
	"math"
	"time"
)

// ServerConfig configures a Server. Numbers that are not positive have the defaults, like other
// zero fields.
type ServerConfig struct {
	// MaxCalls is the number of calls, streams included, that may be in flight on one connection:
	// 1,024, at most 65,535. It is announced to the clients, so that a call too many is refused
	// before it is sent. The lower number of the two sides counts. A call is in flight until it was
	// answered, even if its caller has given up. ErrOverloaded.
	MaxCalls int
	// MaxStreams is the number of MaxCalls that may be streams, which can last forever: half of
	// them, so that there is always a place for a call. ErrOverloaded.
	MaxStreams int
	// MaxCallsInAll is the number of calls that may be in flight on all connections, without
	// streams and OnLoop handlers: 4,096. They are shared fairly between client addresses, and
	// between the connections of an address: docs/rpc-limits.md. Where there are at least two
	// places, one is kept for clients that have none. Further calls wait (MaxWait), or are refused
	// before a handler is called: ErrOverloaded. Handlers run on at most this number of goroutines,
	// plus twice MaxStreamsInAll.
	MaxCallsInAll int
	// MaxWait is how long a call may wait for one of the places of MaxCallsInAll. The queue has
	// four times as many places, which are shared in the same way, and clients take turns. Of a
	// connection the oldest call is next, or the newest once the oldest has waited for a quarter of
	// MaxWait. After MaxWait, or up to a sixteenth later, a call is refused: ErrOverloaded. It
	// leaves the queue when its caller gives up or the server drains. Streams do not wait, nor do
	// requests of more than 64 KiB from clients of former versions. 0: no call waits.
	MaxWait time.Duration
	// MaxStreamsInAll is MaxCallsInAll for streams: 4,096. A single address may have about half.
	// Streams that watch the server's health (package rpchealth) have as many places for
	// themselves.
	MaxStreamsInAll int
	// Memory is the number of bytes that calls in progress may occupy: 256 MiB, at least four of
	// the largest messages. They are requests that handlers use or that are arriving in parts, and
	// answers and items for clients that do not take them. The clients share it as they share
	// places. Answers and items for which there is no memory wait. Requests are refused:
	// ErrOverloaded.
	Memory int
	// MaxMessage is the size of the largest message that a client may send: 4 MiB, up to 1
	// GiB, rounded up to whole KiB. A frame's header, 16 bytes, is part of the message. Credits is
	// the number of messages that it may send ahead: 32. See actor.IDConfig.MaxMessage.
	MaxMessage, Credits int
	// StreamWindow is the number of bytes of a stream that a client may send ahead of the handler:
	// 64 KiB, up to 64 MiB - 1 KiB, in whole KiB. An item may exceed it, so a stream keeps as much
	// as the window and one item. The window of every stream that a client sends counts in Memory.
	StreamWindow int
	// MaxConnectionAge is how long clients use a connection, give or take a tenth: then they
	// connect again, so that a load balancer, a changed address or a rotated certificate takes
	// effect. Calls are made over the old connection until the new one is there, and end where they
	// began. 0: as long as it lasts.
	MaxConnectionAge time.Duration
	// MaxConnectionAgeGrace is how long calls may go on after MaxConnectionAge, before the
	// connection is cut off: a limit for streams, and for clients that do not obey. Until then a
	// client that could not connect is asked again. In the last sixteenth it makes no calls over
	// the connection. 0: as long as they last.
	MaxConnectionAgeGrace time.Duration
	// Interceptors wrap every call, the outermost first.
	Interceptors []Interceptor
}

// withDefaults returns c with defaults for values that are not positive, and within its bounds.
func (c ServerConfig) withDefaults() ServerConfig {
	c.MaxCalls, c.MaxStreams = boundCalls(c.MaxCalls), max(c.MaxStreams, 0)
	c.MaxCallsInAll, c.MaxStreamsInAll = positiveOr(c.MaxCallsInAll, 4096), positiveOr(c.MaxStreamsInAll, 4096)
	c.MaxMessage, c.Credits = boundMessage(c.MaxMessage), positiveOr(c.Credits, defaultCredits)
	c.Memory = boundMemory(c.Memory, c.MaxMessage)
	c.StreamWindow = boundWindow(c.StreamWindow)
	c.MaxConnectionAge = min(c.MaxConnectionAge, math.MaxInt64/2) // a tenth is added to it
	return c
}
