// Package rpc makes calls over connections that are actors of package actor (imported as rdma). What both sides know of a method is one
// value in a package that they share; messages are protobuf's generated structs as they are, types that encode themselves, or bytes:
//
//	var Get = rpc.NewMethod[kvpb.GetRequest, kvpb.GetReply]("kv.Get")
//
//	rpc.Handle(server, Get, func(ctx context.Context, q *kvpb.GetRequest) (*kvpb.GetReply, error) { ... })
//
//	reply, err := rpc.Call(ctx, client, Get, &kvpb.GetRequest{Key: "a"})
//
// The deadline and the end of a caller's context reach the handler's. Go is for actors: the answer comes as a message. Streams
// have one request and any number of answers, at the pace of who receives them. CallRaw and HandleRaw carry bytes, without an allocation
// but the handler's context.
package rpc
