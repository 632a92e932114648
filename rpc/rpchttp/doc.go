// Package rpchttp lets any HTTP client call the methods of protobuf services that package rpc
// serves: curl, browsers, and clients of Connect (https://connectrpc.com/docs/protocol).
//
//	local := rpc.NewClient(rt, server.Addr)
//	h, err := rpchttp.New(local, rpchttp.Config{}, "shop.Orders")
//	http.ListenAndServe(":8080", h)
//
//	curl --json '{"id": 7}' http://localhost:8080/shop.Orders/Get
//
// A Handler is a client of the server, in the same process or in another one: so every call passes
// the server's interceptors and limits, its deadline and its end reach the handler, and the rpc
// errors have their codes. The server sees the Handler as the caller: the identity of the HTTP
// client has to be checked in front of the Handler, for example by a middleware that sets a header.
// Headers of requests become metadata, except those that HTTP and Connect use themselves, and the
// answer's metadata become headers.
//
// All four kinds of methods work: unary ones as application/json or application/proto, streams as
// application/connect+json or +proto. Streams in both directions need HTTP/2 for clients that
// send and receive at the same time. There is no compression. The details of rpc errors are
// omitted: they do not name their type.
//
// Servers of gRPC's protocols need nothing more: connectrpc.com/vanguard serves them in front of a
// Handler, and connectrpc.com/grpcreflect and grpchealth stand beside it.
package rpchttp
