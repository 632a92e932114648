package rpc

import (
	"encoding"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
)

// Bytes is a message of bytes, which are neither encoded nor decoded.
type Bytes []byte

// codec turns messages into bytes and back. A message is a pointer to the type that the codec is
// for.
type codec struct {
	encode func(dst []byte, msg any) ([]byte, error)
	decode func(b []byte, msg any) error // must not keep b
}

var (
	bytesCodec = codec{
		encode: func(dst []byte, msg any) ([]byte, error) { return append(dst, *msg.(*Bytes)...), nil },
		decode: func(b []byte, msg any) error {
			*msg.(*Bytes) = append((*msg.(*Bytes))[:0], b...)
			return nil
		},
	}
	protoCodec = codec{
		encode: func(dst []byte, msg any) ([]byte, error) {
			return proto.MarshalOptions{}.MarshalAppend(dst, msg.(proto.Message))
		},
		decode: func(b []byte, msg any) error { return proto.Unmarshal(b, msg.(proto.Message)) },
	}
	binaryCodec = codec{
		encode: func(dst []byte, msg any) ([]byte, error) { return msg.(encoding.BinaryAppender).AppendBinary(dst) },
		decode: func(b []byte, msg any) error { return msg.(encoding.BinaryUnmarshaler).UnmarshalBinary(b) },
	}
)

// codecOf returns the codec for T: *T is a protobuf message, or appends and unmarshals itself, or T
// is Bytes.
func codecOf[T any]() (codec, error) {
	switch any((*T)(nil)).(type) {
	case *Bytes:
		return bytesCodec, nil
	case proto.Message:
		return protoCodec, nil
	case interface {
		encoding.BinaryAppender
		encoding.BinaryUnmarshaler
	}:
		return binaryCodec, nil
	}
	return codec{}, fmt.Errorf("rpc: *%v is no proto.Message, and no encoding.BinaryAppender and BinaryUnmarshaler; Bytes carries bytes",
		reflect.TypeFor[T]())
}

func mustCodec[T any]() codec {
	c, err := codecOf[T]()
	if err != nil {
		panic(err)
	}
	return c
}
