// Package rpc makes calls over connections that are actors of package actor (imported as rdma).
// What both sides know of a method is one value in a package that they share; messages are
// protobuf's generated structs as they are, types that encode themselves, or bytes:
//
//	var Get = rpc.NewMethod[kvpb.GetRequest, kvpb.GetReply]("kv.Get", rpc.MethodConfig{})
//
//	get := func(ctx context.Context, q *kvpb.GetRequest) (*kvpb.GetReply, error) { ... }
//	rpc.Handle(server, Get, get, rpc.HandlerConfig{})
//
//	reply, err := rpc.Call(ctx, client, Get, &kvpb.GetRequest{Key: "a"})
//
// The deadline and the end of a caller's context reach the handler's. A request that nobody waits
// for any more when its turn comes is not sent, and not handled. Go is for actors: the answer
// comes as a message. Streams (HandleStream, Open) have one request and any number of answers, at
// the receiver's pace. HandleRaw and CallRaw carry bytes. If both sides append to memory of their
// own, a call allocates its handler's context and nothing else. An OnLoop handler's context is not
// allocated either.
//
// # Ownership
//
// Servers and Clients are on a Runtime that the caller has, and are closed before it is shut down.
// A request is the caller's again when the call returns. It is the handler's while that runs; a
// raw request's bytes are not valid beyond that. What a raw handler returns is copied when it has
// returned. A context of a handler is cancelled when the handler returns. That of an OnLoop
// handler must not be used afterwards. With interceptors, all this is true of the moment when they
// have returned, and the handler too: an interceptor may return earlier (Interceptor).
//
// # Ordering
//
// Requests of one goroutine are sent in order, except those of Go when it needs a goroutine (with
// interceptors, retries or waiting). OnLoop handlers of one connection are called in that order,
// one after the other. Handlers on goroutines may overtake one another from their first line on:
// Go's scheduler decides which of two that run at the same time does something first. The items of
// a stream keep their order, and its end comes last.
//
// # Errors
//
// A call fails with an *Error: errors.Is finds what it is (ErrDeadline, ErrOverloaded,
// ErrDraining, ErrUnavailable, a service's own of RegisterCode), Fate says whether the handler may
// have run, and NewError attaches details of any message type, and DetailsOf gets them. Errors of a
// handler that have no code arrive as CodeUnknown with their text; a panic as ErrInternal without
// it. Config.Retry says which calls are repeated automatically. docs/rpc.md has the rules and the
// bytes on the wire.
//
// # Isolation
//
// A server shares its places and its memory out by the client's address and by connection. A client
// that takes all it can get leaves room for others, and is refused with ErrOverloaded. docs/rpc.md
// has the rule ("Shares").
//
// # Counters
//
// Server.Inspect and Client.Inspect report on each method's calls: how many, how they have ended, by
// code, and how long they took. They wait for no loop. docs/rpc.md says what counts as what.
//
// # Code that does not return
//
// Handlers, interceptors, codecs and errors are the user's, and may panic or call runtime.Goexit
// (testing's FailNow). That costs the call they were at. At a server it is answered with
// ErrInternal, logged, and published (rdma.Panicked); its place and its worker are free again, and
// the other calls of its message go on. That is so also where the handler is OnLoop and its loop
// has to continue on another goroutine. Package actor says when that ends the connection that was
// just delivering an event. At a client a codec's panic is the error of the call: ErrBadMessage,
// with a *PanicError in it. Go answers always, and what it calls on goroutines of its own does not
// end the process. Two things remain the caller's: a panic of an interceptor on the caller's
// goroutine reaches the caller, and a Goexit there ends that goroutine. A stream that was being
// opened or read is closed then.
//
// # Limitations
//
// Clients do not stream. A Client has one connection at a time, to one address: nothing balances
// load. Messages are as large as Config.MaxMessage says. Connections are secured as the Runtime's
// Config.Security says, each as a whole. Then Info.Identity says who the other side is, and an
// interceptor decides what it may call. Metadata proves nothing: the caller has chosen it.
package rpc
