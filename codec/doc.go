// Package codec turns messages into bytes and back, by the name of their type. So nobody who sends
// messages of several types has to think of a first byte that says which.
//
//	var messages = codec.New(
//		codec.JSON[*Job]("jobs.Job"),
//		codec.Own("jobs.Point", appendPoint, decodePoint), // bytes of your own
//	)
//
// Protobuf messages need no line: every type whose Go package is in the program has its full name.
// Other messages have the name that their line gives them. It is the same on all machines, and does
// not change when the Go type is renamed. The types *Job and Job are two: register the one that is
// sent.
//
// # Use
//
// Package remoting takes a [Registry] in its Config; the name travels in a field of its own. For
// connections, [reconnect] and whatever else carries bytes, [Registry.Marshal] puts the name before
// the message, and [Registry.Unmarshal] gives the message again:
//
//	b, err := messages.Marshal(&Job{ID: 7})
//	if err != nil { ... } // says what to do
//	ctx.Send(link, rdma.NewSend(b))
//
//	case *rdma.Received:
//		msg, err := messages.Unmarshal(m.Data) // a *Job; nothing of it is in m.Data
//
// Marshal writes the length of the name (a varint as protobuf has them), the name, and the
// message's bytes. A short name makes a short message.
//
// # Ownership
//
// A Registry may be used on any goroutine, and types may be registered while it is used. It keeps
// no message and no bytes. Functions of an own codec, and the methods that JSON calls, run on the
// goroutine of the caller, perhaps on several at the same time.
//
// # Errors
//
// Every error is an [*Error], which says what to do. errors.Is finds ErrNil, ErrUnregistered,
// ErrUnknownType, ErrMalformed, or the codec's own error; and EINVAL if a message cannot be
// encoded, EBADMSG if bytes cannot be decoded. A panic in a codec is a [*PanicError] in it. New and
// Register panic for what is a mistake in a program: a name or a type that is registered twice.
//
// # Limitations
//
// A codec that calls runtime.Goexit ends the goroutine of its caller. A codec that blocks blocks
// it; on a loop it must not.
//
// Bytes of strangers may decode to a value that takes many times as much memory as they do: an
// empty message in a list is two bytes. Who bounds messages bounds that. A stranger may choose any
// registered type and any protobuf type that the program has: look at a message before you act on
// it.
//
// [reconnect]: https://pkg.go.dev/github.com/rdmactor/rdmactor/actor/reconnect
package codec
