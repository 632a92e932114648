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
	// MaxCalls is how many calls, streams included, may be in flight on one connection: 1,024, at
	// most 65,535. A server announces it to its clients, so that a call too many is refused before
	// it is sent. The lower number of the two sides counts. A call is in flight until it was
	// answered, also if its caller has gone. ErrOverloaded.
	MaxCalls int
	// MaxStreams is how many of MaxCalls may be streams, which can go on for ever: half of them, so
	// that calls always find a place. A server counts the streams of each connection, a client all
	// that it has open. ErrOverloaded.
	MaxStreams int
	// Memory is how many bytes may be kept for what is under way: 256 MiB, at least four of the
	// largest messages. A server keeps requests for its handlers, and answers and items for clients
	// that do not take them; its clients share it as they share places. Answers and items for which
	// there is no memory wait. A client keeps the items of streams that nobody receives, and opens
	// no more streams than their windows, with an item beyond each, have room for. ErrOverloaded.
	Memory int
	// MaxMessage is how large a message of the peer may be: 64 KiB. A frame's header, 16 bytes, is
	// part of the message. Credits are how many of them it may send ahead: 32. See
	// actor.IDConfig.MaxMessage.
	MaxMessage, Credits int
	// Interceptors are around every call, the outermost first.
	Interceptors []Interceptor

	// Only a server has what follows.

	// MaxCallsInAll is how many calls may be in flight on all connections, streams and OnLoop
	// handlers apart: 4,096. Clients' addresses share it, and the connections of an address share
	// what that has: docs/rpc.md, "Shares". Where there are at least two places, one is kept for
	// clients that have none. What comes beyond is refused before any handler is called:
	// ErrOverloaded. Handlers run on so many goroutines at most, and as many more as there may be
	// streams.
	MaxCallsInAll int
	// MaxStreamsInAll is MaxCallsInAll for streams: 4,096. A single address may have about half.
	MaxStreamsInAll int

	// Only a client has what follows.

	// StreamWindow is how many bytes of a stream the server may send ahead of what was received of
	// it: 64 KiB, up to 64 MiB - 1 KiB, in whole KiB. An item may exceed it, so a stream keeps as
	// much as the window and one item.
	StreamWindow int
	// Timeout gives every call a deadline whose context has none: its time from the call on. Of a
	// stream it limits Open only. 0: none.
	Timeout time.Duration
	// Retry repeats calls that failed because the server refused them (ErrOverloaded, ErrDraining)
	// or because there is no connection (ErrUnavailable), until their context ends. Streams are not
	// repeated.
	Retry Retry
	// WaitForReady has calls wait while there is no connection, until their context ends, instead
	// of failing with ErrUnavailable or ErrDraining. As many may wait as may be in flight. When the
	// Runtime has been shut down there is nothing to wait for.
	WaitForReady bool
	// Backoff is how long a Client waits before it connects again. Then it waits for its turn at
	// the Runtime's reconnect.Limiter, with all that connect again.
	Backoff reconnect.Backoff
}

// Retry says when a call is repeated. What may have been executed is repeated only if its method
// is Idempotent.
type Retry struct {
	Attempts int // in all; 0 and 1: no repetition
	// before the second attempt, twice as long before each that follows, a quarter more or less:
	// 10 ms
	Backoff time.Duration
	Max     time.Duration // what the backoff grows to: 1 s
}

// withDefaults is c with its defaults in place of what is not positive, and within its bounds.
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

// keeps is how many bytes may be kept.
func (c *Config) keeps() int { return max(c.Memory, 4*c.MaxMessage) }

// streamsOf is how many of so many calls of a connection may be streams.
func (c *Config) streamsOf(calls int) int { return cmp.Or(c.MaxStreams, (calls+1)/2) }

// openStreams is how many streams a client may have open over a connection of so many calls: each
// may have its window kept, and an item that exceeds it.
func (c *Config) openStreams(calls int) int {
	return min(c.streamsOf(calls), max(c.keeps()/(c.StreamWindow+c.MaxMessage), 1))
}
