package rpc

import (
	"time"

	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// ClientConfig configures a Client. Numbers that are not positive have the defaults, like other
// zero fields.
type ClientConfig struct {
	// MaxCalls is the number of calls, streams included, that may be in flight on one connection:
	// 1,024, at most 65,535. The server announces its own number, and the lower one counts. A call
	// is in flight until it was answered, even if its caller has given up. ErrOverloaded.
	MaxCalls int
	// MaxStreams is the number of streams, which can last forever, that the client may have open:
	// half of MaxCalls, so that there is always a place for a call. ErrOverloaded.
	MaxStreams int
	// Memory is the number of bytes of stream items that wait to be received, and of answers that
	// are arriving in parts: 256 MiB, at least four of the largest messages. Half of it is for the
	// windows: the client opens no more streams than have room there. The other half is for items
	// that exceed their windows, and for the answers: a stream or call for whose item or part there
	// is no room ends. Both are ErrOverloaded. A stream that the server has ended counts until
	// Receive has returned its end, or the stream is closed, or its context ends.
	Memory int
	// MaxMessage is the size of the largest message that the server may send: 4 MiB, up to
	// 1 GiB, rounded up to whole KiB. A frame's header, 16 bytes, is part of the message. Credits
	// is the number of messages that it may send ahead: 32. See actor.IDConfig.MaxMessage.
	MaxMessage, Credits int
	// StreamWindow is the number of bytes of a stream that the server may send ahead of the
	// receiver: 64 KiB, up to 64 MiB - 1 KiB, in whole KiB. An item may exceed it, so a stream
	// keeps as much as the window and one item.
	StreamWindow int
	// Interceptors wrap every call, the outermost first.
	Interceptors []Interceptor
	// Timeout is the deadline of calls whose context has none, measured from the start of the call.
	// For a stream it limits Open only. 0: none.
	Timeout time.Duration
	// Retry repeats calls that failed because the server refused them (ErrOverloaded, ErrDraining)
	// or because there is no connection (ErrUnavailable), until their context ends. Streams are not
	// repeated.
	Retry Retry
	// If WaitForReady is set, here or for a method (MethodConfig), calls wait while there is no
	// connection, until their context ends, instead of failing with ErrUnavailable or ErrDraining.
	// As many may wait as may be in flight. After the Runtime was shut down, calls fail.
	WaitForReady bool
	// Service has other settings for some methods, such as Timeout and Retry, and the service whose
	// health a pool watches. It must not be changed afterwards.
	Service ServiceConfig
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
	Max     time.Duration // upper bound of the backoff: 1 s; at least Backoff
}

// withDefaults returns c with defaults for values that are not positive, and within its bounds.
func (c ClientConfig) withDefaults() ClientConfig {
	c.MaxCalls, c.MaxStreams = boundCalls(c.MaxCalls), max(c.MaxStreams, 0)
	c.MaxMessage, c.Credits = boundMessage(c.MaxMessage), positiveOr(c.Credits, defaultCredits)
	c.Memory = boundMemory(c.Memory, c.MaxMessage)
	c.StreamWindow = boundWindow(c.StreamWindow)
	c.Backoff = c.Backoff.WithDefaults()
	return c
}

// openStreams returns how many streams a client may have open over a connection of so many calls:
// half of the memory is for their windows.
func (c *ClientConfig) openStreams(calls int) int {
	return min(streamsOf(c.MaxStreams, calls), max(c.Memory/2/c.StreamWindow, 1))
}
