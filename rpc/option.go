package rpc

import (
	"cmp"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Option is an option of NewServer or Dial, or of both.
type Option interface {
	ServerOption
	ClientOption
}

// ServerOption is an option of NewServer.
type ServerOption interface{ server(*serverConfig) }

// ClientOption is an option of Dial.
type ClientOption interface{ client(*clientConfig) }

type (
	serverOption func(*serverConfig)
	clientOption func(*clientConfig)
	bothOption   func(*config)
)

func (o serverOption) server(c *serverConfig) { o(c) }
func (o clientOption) client(c *clientConfig) { o(c) }
func (o bothOption) server(c *serverConfig)   { o(&c.config) }
func (o bothOption) client(c *clientConfig)   { o(&c.config) }

// config is what both sides can be told.
type config struct {
	calls        int // in flight on a connection
	streams      int // of them; 0: half
	memory       int // bytes
	message      int // bytes of the largest
	interceptors []Interceptor
	id           []rdma.IDOption
}

type serverConfig struct {
	config
	all        int // calls in flight on all connections
	allStreams int
}

type clientConfig struct {
	config
	window  int // bytes of a stream
	timeout time.Duration
	retry   Retry
	wait    bool
	backoff reconnect.Backoff
}

const (
	defaultCalls  = 1024
	defaultAll    = 4096 // calls, and streams
	defaultWindow = 64 << 10
	defaultMemory = 256 << 20
	// defaultMessage is package actor's.
	defaultMessage = 64 << 10
)

// holds is how many bytes may be held.
func (c *config) holds() int { return max(c.memory, 4*c.message) }

// streamsOf is how many of so many calls of a connection may be streams.
func (c *config) streamsOf(calls int) int { return cmp.Or(c.streams, (calls+1)/2) }

func newServerConfig(opts []ServerOption) serverConfig {
	c := serverConfig{config: config{calls: defaultCalls, memory: defaultMemory, message: defaultMessage}, all: defaultAll, allStreams: defaultAll}
	for _, o := range opts {
		o.server(&c)
	}
	return c
}

func newClientConfig(opts []ClientOption) clientConfig {
	c := clientConfig{config: config{calls: defaultCalls, memory: defaultMemory, message: defaultMessage}, window: defaultWindow}
	for _, o := range opts {
		o.client(&c)
	}
	c.backoff = c.backoff.WithDefaults()
	return c
}

// openStreams is how many streams a client may have open over a connection of so many calls: each
// may hold its window, and an item that exceeds it.
func (c *clientConfig) openStreams(calls int) int {
	return min(c.streamsOf(calls), max(c.holds()/(c.window+c.message), 1))
}

// WithMaxCalls says how many calls, streams included, may be in flight on one connection: 1,024,
// at most 65,535. A server tells its clients, so that a call too many is refused before it is
// sent; the lower number of the two sides holds. A call is in flight until it was answered, also
// if its caller has gone. ErrOverloaded.
func WithMaxCalls(n int) Option {
	return bothOption(func(c *config) { c.calls = min(max(n, 1), wire.MaxSlots-1) })
}

// WithMaxStreams says how many of the calls of WithMaxCalls may be streams, which can go on for
// ever: half of them, so that calls always find a place. A server counts the streams of each
// connection, a client all that it has open. ErrOverloaded.
func WithMaxStreams(n int) Option {
	return bothOption(func(c *config) { c.streams = max(n, 1) })
}

// WithMaxCallsInAll says how many calls may be in flight on all connections of a server, streams
// and OnLoop handlers apart: 4,096. Clients' addresses share it, and the connections of an address
// share what that has: docs/rpc.md, "Shares". What comes beyond is refused on the loop, before any
// handler: ErrOverloaded. Handlers run on so many goroutines at most, and as many more as there
// may be streams.
func WithMaxCallsInAll(n int) ServerOption {
	return serverOption(func(c *serverConfig) { c.all = max(n, 1) })
}

// WithMaxStreamsInAll is WithMaxCallsInAll for streams: 4,096. A single address may have about
// half.
func WithMaxStreamsInAll(n int) ServerOption {
	return serverOption(func(c *serverConfig) { c.allStreams = max(n, 1) })
}

// WithMemory says how many bytes are held for what is under way: 256 MiB, at least four of the
// largest messages. A server holds requests for its handlers, and answers and items for clients
// that do not take them; its clients share it as they share places. A client holds the items of
// streams that nobody receives, and opens no more streams than their windows, with an item beyond
// each, have room for. ErrOverloaded.
func WithMemory(bytes int) Option {
	return bothOption(func(c *config) { c.memory = bytes })
}

// WithInterceptors adds interceptors, outermost first.
func WithInterceptors(is ...Interceptor) Option {
	return bothOption(func(c *config) { c.interceptors = append(c.interceptors, is...) })
}

// WithMessages says how large a message of the peer may be (64 KiB), and how many of them it may
// send ahead (32): see actor.WithMessages. A frame's header, 16 bytes, is part of the message.
func WithMessages(maxBytes, credits int) Option {
	return bothOption(func(c *config) {
		c.id, c.message = append(c.id, rdma.WithMessages(maxBytes, credits)), max(maxBytes, 0)
	})
}

// WithStreamWindow says how many bytes of a stream the server may send ahead of what was received
// of it: 64 KiB, up to 64 MiB - 1 KiB, in whole KiB. An item may exceed it, so a stream holds as
// much as the window and one item.
func WithStreamWindow(bytes int) ClientOption {
	return clientOption(func(c *clientConfig) { c.window = min(max(bytes, 1<<10), 65_535<<10) &^ (1<<10 - 1) })
}

// WithTimeout gives every call a deadline whose context has none: its time from the call on. Of a
// stream it limits Open only. 0: none.
func WithTimeout(d time.Duration) ClientOption {
	return clientOption(func(c *clientConfig) { c.timeout = d })
}

// WaitForReady has calls wait while there is no connection, until their context ends, instead of
// failing with ErrUnavailable or ErrDraining. As many may wait as may be in flight. When the
// Runtime has been shut down there is nothing to wait for.
func WaitForReady() ClientOption { return clientOption(func(c *clientConfig) { c.wait = true }) }

// WithBackoff says how long a Client waits before it connects again: reconnect.Backoff and its
// defaults. Then it waits for its turn at the Runtime's reconnect.Limiter, with all that connect
// again.
func WithBackoff(b reconnect.Backoff) ClientOption {
	return clientOption(func(c *clientConfig) { c.backoff = b })
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

// WithRetry has calls repeated that failed because the server refused them (ErrOverloaded,
// ErrDraining) or because there is no connection (ErrUnavailable), while their context lets them.
// Streams are not repeated.
func WithRetry(r Retry) ClientOption {
	if r.Backoff <= 0 {
		r.Backoff = 10 * time.Millisecond
	}
	if r.Max <= 0 {
		r.Max = time.Second
	}
	return clientOption(func(c *clientConfig) { c.retry = r })
}
