// Package codec encodes messages to bytes and decodes them, by the name of their type. So programs
// that send messages of several types need no type byte.
//
//	var messages = codec.New(
//		codec.JSON[*Job]("jobs.Job"),
//		codec.Own("jobs.Point", appendPoint, decodePoint), // custom bytes
//	)
//
// Protobuf messages need no line: every type whose Go package is in the program has its full name.
// Other messages have the name given in their line. It must be the same on all machines, and does
// not change when the Go type is renamed. *Job and Job are different types: register the one that
// is sent.
//
// # Use
//
// Package remoting takes a [Registry] in its Config; the name is sent in a separate field. For
// connections, [reconnect] and other carriers of bytes, [Registry.Marshal] writes the name before
// the message, and [Registry.Unmarshal] returns the message:
//
//	b, err := messages.Marshal(&Job{ID: 7})
//	if err != nil { ... } // includes a remedy
//	ctx.Send(link, rdma.NewSend(b))
//
//	case *rdma.Received:
//		msg, err := messages.Unmarshal(m.Data) // a *Job; it does not refer to m.Data
//
// Marshal writes the length of the name (a varint as in protobuf), the name, and the message's
// bytes. A short name makes a short message.
//
// # Ownership
//
// A Registry may be used on any goroutine, and types may be registered while it is used. It keeps
// no message and no bytes. Functions of a custom codec, and the methods that JSON calls, run on the
// caller's goroutine, possibly on several concurrently.
//
// # Errors
//
// Every error is an [*Error], usually with a remedy (Error.Hint). errors.Is finds ErrNil,
// ErrUnregistered, ErrUnknownType, ErrMalformed, or the codec's own error; and EINVAL if a message
// cannot be encoded, EBADMSG if bytes cannot be decoded. A panic in a codec is a [*PanicError] in
// it. New and Register panic for a mistake in the program: a name or a type that is registered
// twice.
//
// # Limitations
//
// A codec runs on the goroutine of its caller. On a loop it must not block.
//
// Bytes of an untrusted peer may decode to a value that takes many times as much memory: an empty
// message in a list is two bytes. A bound on the size of messages also bounds that. An untrusted
// peer may choose any registered type and any protobuf type that the program has: check a message
// before acting on it.
//
// [reconnect]: https://pkg.go.dev/github.com/rdmactor/rdmactor/actor/reconnect
package codec
