package rpc

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	codecs "github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/internal/optional"
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

// codecOf returns the codec for T. It is c, if that is set and T is not Bytes. Otherwise *T is a
// protobuf message, or appends and unmarshals itself, or is encoded as JSON.
func codecOf[T any](c codecs.Codec) (codec, error) {
	zero := any((*T)(nil))
	if _, ok := zero.(*Bytes); ok {
		return bytesCodec, nil
	}
	if c != nil {
		return userCodec[T](c)
	}
	switch zero.(type) {
	case proto.Message:
		return protoCodec, nil
	case interface {
		encoding.BinaryAppender
		encoding.BinaryUnmarshaler
	}:
		return binaryCodec, nil
	}
	return userCodec[T](codecs.New(codecs.JSON[*T]("JSON")))
}

// userCodec returns the codec that c has for *T or for T. The name of the type is not sent, because
// both sides know it: c is asked for it once, with a zero value.
func userCodec[T any](c codecs.Codec) (codec, error) {
	name, _, err := c.Append(nil, new(T))
	byValue := errors.Is(err, codecs.ErrUnregistered)
	if byValue {
		var verr error
		if name, _, verr = c.Append(nil, *new(T)); !errors.Is(verr, codecs.ErrUnregistered) {
			err = verr
		}
	}
	if err != nil {
		return codec{}, fmt.Errorf("rpc: a message of type %v: %w", reflect.TypeFor[T](), err)
	}
	return codec{
		encode: func(dst []byte, msg any) (b []byte, err error) {
			if byValue {
				msg = *msg.(*T)
			}
			_, b, err = c.Append(dst, msg)
			return b, err
		},
		decode: func(b []byte, msg any) error {
			got, err := c.Decode(name, b)
			if err != nil {
				return err
			}
			switch got := got.(type) {
			case *T:
				*msg.(*T) = *got
			case T:
				*msg.(*T) = got
			default:
				return fmt.Errorf("the codec has decoded a %T", got)
			}
			return nil
		},
	}, nil
}

func mustCodec[T any](cfg []MethodConfig) codec {
	c, err := codecOf[T](optional.Value(cfg).Codec)
	if err != nil {
		panic(err)
	}
	return c
}
