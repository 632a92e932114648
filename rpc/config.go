package rpc

import (
	"cmp"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Config configures a Server or a Client. Numbers that are not positive have the defaults, like
// other zero fields.
type Config struct {
	// MaxCalls is the number of calls, streams included, that may be in flight on one connection:
	// 1,024, at most 65,535. A server announces it to its clients, so that a call too many is
	// refused before it is sent. The lower number of the two sides counts. A call is in flight
	// until it was answered, even if its caller has given up. ErrOverloaded.
	MaxCalls int
	// MaxStreams is the number of MaxCalls that may be streams, which can last forever: half of
	// them, so that there is always a place for a call. A server counts the streams of each
	// connection, a client all its open ones. ErrOverloaded.
	MaxStreams int
	// Memory is the number of bytes that calls in progress may occupy: 256 MiB, at least four of
	// the largest messages. A server keeps requests for its handlers, and answers and items for
	// clients that do not take them; its clients share it as they share places. Answers and items
	// for which there is no memory wait. A client keeps stream items that are not received yet, and
	// opens only as many streams as there is memory for, each with its window and one more item.
	// ErrOverloaded.
	Memory int
	// MaxMessage is the size of the largest message that the peer may send: 64 KiB. A frame's
	// header, 16 bytes, is part of the message. Credits is the number of messages that it may send
	// ahead: 32. See actor.IDConfig.MaxMessage.
	MaxMessage, Credits int
	// StreamWindow is the number of bytes of a stream that the peer may send ahead of this side's
	// receiver: 64 KiB, up to 64 MiB - 1 KiB, in whole KiB. An item may exceed it, so a stream
	// keeps as much as the window and one item. A server counts the window of every stream that a
	// client sends in Memory.
	StreamWindow int
	// Interceptors wrap every call, the outermost first.
	Interceptors []Interceptor

	// The following fields apply to servers only.

	// MaxCallsInAll is the number of calls that may be in flight on all connections, without
	// streams and OnLoop handlers: 4,096. They are shared fairly between client addresses, and
	// between the connections of an address: docs/rpc.md, "Shares". Where there are at least two
	// places, one is kept for clients that have none. Further calls are refused before a handler is
	// called: ErrOverloaded. Handlers run on at most this number of goroutines, plus
	// MaxStreamsInAll.
	MaxCallsInAll int
	// MaxStreamsInAll is MaxCallsInAll for streams: 4,096. A single address may have about half.
	MaxStreamsInAll int

	// The following fields apply to clients only.

	// Timeout is the deadline of calls whose context has none, measured from the start of the call.
	// For a stream it limits Open only. 0: none.
	Timeout time.Duration
	// Retry repeats calls that failed because the server refused them (ErrOverloaded, ErrDraining)
	// or because there is no connection (ErrUnavailable), until their context ends. Streams are not
	// repeated.
	Retry Retry
	// If WaitForReady is set, calls wait while there is no connection, until their context ends,
	// instead of failing with ErrUnavailable or ErrDraining. As many may wait as may be in flight.
	// After the Runtime was shut down, calls fail.
	WaitForReady bool
	// Backoff is how long a Client waits before it connects again. Then it waits for its turn at
	// the Runtime's reconnect.Limiter, with all that connect again.
	Backoff reconnect.Backoff
}

// Retry specifies when a call is repeated. A call that may have been executed is repeated only if
// its method is Idempotent.
type Retry struct {
	Attempts int // including the first; 0 and 1: no repetition
	// the wait before the second attempt, doubled before each later one, plus or minus a quarter:
	// 10 ms
	Backoff time.Duration
	Max     time.Duration // upper bound of the backoff: 1 s
}

// withDefaults returns c with defaults for values that are not positive, and within its bounds.
func (c Config) withDefaults() Config {
	c.MaxCalls = min(positive(c.MaxCalls, 1024), wire.MaxSlots-1)
	c.MaxStreams = max(c.MaxStreams, 0)
	c.Memory = positive(c.Memory, 256<<20)
	c.MaxMessage, c.Credits = positive(c.MaxMessage, 64<<10), positive(c.Credits, 32)
	c.MaxCallsInAll = positive(c.MaxCallsInAll, 4096)
	c.MaxStreamsInAll = positive(c.MaxStreamsInAll, 4096)
	c.StreamWindow = min(max(positive(c.StreamWindow, 64<<10), 1<<10), 65_535<<10) &^ (1<<10 - 1)
	c.Retry.Backoff = positive(c.Retry.Backoff, 10*time.Millisecond)
	c.Retry.Max = positive(c.Retry.Max, time.Second)
	c.Backoff = c.Backoff.WithDefaults()
	return c
}

func positive[T ~int | ~int64](v, byDefault T) T { return cmp.Or(max(v, 0), byDefault) }

// id is how the identifiers work.
func (c *Config) id() rdma.IDConfig {
	return rdma.IDConfig{MaxMessage: c.MaxMessage, Credits: c.Credits, Stream: true}
}

// keeps returns how many bytes may be kept.
func (c *Config) keeps() int { return max(c.Memory, 4*c.MaxMessage) }

// streamsOf returns the number of calls of a connection that may be streams.
func (c *Config) streamsOf(calls int) int { return cmp.Or(c.MaxStreams, (calls+1)/2) }

// openStreams returns how many streams a client may have open over a connection of so many calls:
// each may have its window kept, and an item that exceeds it.
func (c *Config) openStreams(calls int) int {
	return min(c.streamsOf(calls), max(c.keeps()/(c.StreamWindow+c.MaxMessage), 1))
}
