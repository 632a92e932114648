package rpc

import (
	"fmt"
	"sync/atomic"
	"time"

	codecs "github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// method is the part of a method that both sides share.
type method struct {
	name     string
	index    int  // index in tables of methods, from 0
	stream   bool // sends or items
	sends    bool // the client sends items instead of a request
	items    bool // the server sends items before its answer, which has no body
	cfg      MethodConfig
	req, rep codec
}

var methods atomic.Int64

// kind is which sides of a method send a stream of items.
type kind struct{ sends, items bool }

var unary, serverSends, clientSends, bothSend = kind{}, kind{items: true}, kind{sends: true}, kind{true, true}

func newMethod(name string, of kind, req, rep codec, cfg ...MethodConfig) *method {
	if name == "" || len(name) > wire.MaxMethodName {
		panic(fmt.Sprintf("rpc: a method's name has 1 to %d bytes: %q", wire.MaxMethodName, name))
	}
	return &method{
		name: name, index: int(methods.Add(1)) - 1, cfg: optional.Value(cfg), req: req, rep: rep,
		stream: of.sends || of.items, sends: of.sends, items: of.items,
	}
}

// MethodConfig configures a method. Zero fields have their defaults. A client can have other
// settings: ClientConfig.Service.
type MethodConfig struct {
	// Idempotent methods can be executed twice without harm: calls with an unknown fate may be
	// repeated (ClientConfig.Retry).
	Idempotent bool
	// Codec encodes the messages of a method, except Bytes: a *codec.Registry with the types of
	// both, or with pointers to them. Both sides use the same. nil: protobuf for its messages,
	// types that encode themselves do so, and all others are JSON.
	Codec codecs.Codec
	// Timeout is the deadline of calls whose context has none, in place of ClientConfig.Timeout. A
	// context's own deadline counts alone, also a later one. For a stream it limits Open only. 0:
	// ClientConfig.Timeout. Negative: none.
	Timeout time.Duration
	// Retry is used in place of ClientConfig.Retry if its Attempts are positive.
	Retry Retry
	// WaitForReady makes the calls of the method wait for a connection, as
	// ClientConfig.WaitForReady does for all calls.
	WaitForReady bool
	// MaxRequest is the size of the largest request, in bytes: ErrTooLarge, at the client before it
	// is sent, and at the server before a handler is called. The server does not know a client's
	// ServiceConfig, which can only lower it. Items of streams do not count. 0: MaxMessage of the
	// server is the only limit, and for OnLoop handlers 64 KiB.
	MaxRequest int
	// MaxResponse is the size of the largest answer, or item of a server's stream, in bytes:
	// ErrTooLarge, at the server before it is sent, and at the client as soon as more has arrived.
	// The server does not know a client's ServiceConfig, which can only lower it. With an item that
	// is too large the client ends the stream. 0: MaxMessage of the client is the only limit.
	MaxResponse int
}

// Method is a call with one answer: a Q is sent, an R comes back. Both sides use one value, in a
// package that they share: the server to register the handler, the client to call. Q and R are
// protobuf's generated structs, types that append and unmarshal themselves
// (encoding.BinaryAppender, BinaryUnmarshaler), Bytes, or any type that encoding/json encodes.
// MethodConfig.Codec selects another encoding.
type Method[Q, R any] struct{ m *method }

// NewMethod declares a method. The client sends name ("kv.Get") to select the method. NewMethod
// panics if the name does not have 1 to 255 bytes, or if Q or R cannot be encoded. It is meant for
// package variables: a method is never removed.
func NewMethod[Q, R any](name string, cfg ...MethodConfig) Method[Q, R] {
	return Method[Q, R]{newMethod(name, unary, mustCodec[Q](cfg), mustCodec[R](cfg), cfg...)}
}

// RawMethod is a call whose request and answer are bytes.
type RawMethod struct{ m *method }

// NewRawMethod declares a method that carries bytes.
func NewRawMethod(name string, cfg ...MethodConfig) RawMethod {
	return RawMethod{newMethod(name, unary, bytesCodec, bytesCodec, cfg...)}
}

// Stream is a call with many answers: a Q is sent, any number of Ts come back, then the end or an
// error.
type Stream[Q, T any] struct{ m *method }

// NewStream declares a stream.
func NewStream[Q, T any](name string, cfg ...MethodConfig) Stream[Q, T] {
	return Stream[Q, T]{newMethod(name, serverSends, mustCodec[Q](cfg), mustCodec[T](cfg), cfg...)}
}

// ClientStream is a call with any number of Qs and one answer: the client sends Qs, and the server
// answers with an R, which may come before the last Q.
type ClientStream[Q, R any] struct{ m *method }

// NewClientStream declares a client stream.
func NewClientStream[Q, R any](name string, cfg ...MethodConfig) ClientStream[Q, R] {
	return ClientStream[Q, R]{newMethod(name, clientSends, mustCodec[Q](cfg), mustCodec[R](cfg), cfg...)}
}

// BidiStream is a stream in both directions: the client sends Qs, the server sends Ts, each at its
// own pace, and the server ends it.
type BidiStream[Q, T any] struct{ m *method }

// NewBidiStream declares a stream in both directions.
func NewBidiStream[Q, T any](name string, cfg ...MethodConfig) BidiStream[Q, T] {
	return BidiStream[Q, T]{newMethod(name, bothSend, mustCodec[Q](cfg), mustCodec[T](cfg), cfg...)}
}

// callFlags returns the flags for the kind of a call.
func (m *method) callFlags() (f uint8) {
	if m.items {
		f |= wire.FlagStream
	}
	if m.sends {
		f |= wire.FlagSends
	}
	return f
}
