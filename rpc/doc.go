// Package rpc makes calls, and streams of messages, over RDMA connections, which are those of
// package actor (imported as rdma). A method is a value in a package that client and server share;
// messages are protobuf's generated structs as they are, types that encode themselves, bytes, or Go
// structs as JSON:
//
//	var Get = rpc.NewMethod[kvpb.GetRequest, kvpb.GetReply]("kv.Get")
//
//	get := func(ctx context.Context, q *kvpb.GetRequest) (*kvpb.GetReply, error) { ... }
//	rpc.Handle(server, Get, get)
//
//	reply, err := rpc.Call(ctx, client, Get, &kvpb.GetRequest{Key: "a"})
//
// Configurations may be left out: each function takes at most one.
//
// protoc-gen-go-rdmactor generates all of it from a service in a .proto file.
//
// The deadline and the end of a caller's context reach the handler's. A request whose caller has
// given up is neither sent nor handled. Go is for actors: the answer comes as a message.
//
// Streams have items of the server (HandleStream, Open, Items), of the client (HandleClientStream,
// OpenClientStream) or of both (HandleBidiStream, OpenBidiStream), at the pace of their receivers.
// An answer can carry metadata (SetHeader, SetTrailer, ReceiveHeader, ReceiveTrailer), as a call
// can (WithMetadata).
//
// HandleRaw and CallRaw carry bytes. If both sides append to their own buffers, a call allocates
// its handler's context and nothing else. An OnLoop handler's context is not allocated either.
//
// # Ownership
//
// Servers and Clients use a Runtime of the caller, and are closed before it is shut down. A request
// is the caller's again when the call returns. It belongs to the handler while that runs; a raw
// request's bytes are not valid afterwards. The result of a raw handler is copied when it returns.
// A context of a handler is cancelled when the handler returns. That of an OnLoop handler must not
// be used afterwards. With interceptors, all this applies to the moment when both they and the
// handler have returned: an interceptor may return earlier (Interceptor).
//
// # Ordering
//
// Requests of one goroutine are sent in order, except those of Go when it needs a goroutine (with
// interceptors, retries or waiting). OnLoop handlers of one connection are called in that order,
// one after the other. A request of more than 64 KiB is sent in parts: smaller ones may overtake
// it. Handlers on goroutines may overtake one another from their first line on: Go's scheduler
// decides which of two that run at the same time does something first. The items of a stream keep
// their order, and its end comes last.
//
// # Errors
//
// A call fails with an *Error: errors.Is matches it with its kind (ErrDeadline, ErrOverloaded,
// ErrDraining, ErrUnavailable, or a service's error from RegisterCode), and Fate reports whether
// the handler may have run. NewError attaches details of any message type, and DetailsOf returns
// them. Errors of a handler that have no code arrive as CodeUnknown with their text; a panic as
// ErrInternal without it. ClientConfig.Retry selects the calls that are repeated automatically.
// docs/rpc.md has the rules, and docs/rpc-wire.md the bytes on the wire.
//
// # Clients and servers
//
// NewClient does not wait for its server: the first call connects. Client.Connect, and Dial, wait
// for the connection. NewPool makes a Client of many servers, which a Resolver finds: it balances
// its calls, ejects servers that fail, calls another server when one does not answer (Hedge), and
// bounds the load by repetitions.
//
// # Isolation
//
// A server shares its places and its memory out by the client's address and by connection. A client
// that takes as much as it can leaves room for others, and is refused with ErrOverloaded.
// docs/rpc-limits.md has the rules.
//
// # Counters
//
// Server.Inspect and Client.Inspect report on each method's calls: how many, how they ended, by
// code, and how long they took. They wait for no loop. docs/rpc.md defines the counters.
//
// # Code that does not return
//
// Handlers, interceptors, codecs and errors are the user's, and may panic. That ends only the
// current call. A server answers it with ErrInternal, logs it, and publishes it (rdma.Panicked); its
// place and its worker are free again, and the other calls of its message go on. A handler that
// calls runtime.Goexit (testing's FailNow) on a worker is answered in the same way. An OnLoop
// handler that does so ends its loop, with all connections there (package actor). At a client a
// codec's panic is the error of the call: ErrBadMessage, with a *PanicError in it. Code that Go
// calls on its own goroutines does not end the process. A panic of an interceptor on the caller's
// goroutine reaches the caller. A stream that was being opened or read is closed then.
//
// # Limitations
//
// MaxMessage limits the size of messages. Connections are secured as configured by the
// Runtime's Config.Security, each as a whole. Info.Identity is then the identity of the other side,
// and an interceptor decides which methods it may call. Metadata proves nothing: the caller has
// chosen it.
package rpc
