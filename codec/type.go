package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoimpl"
)

// Type is a type of messages with its name and its codec, for New and Register.
type Type struct {
	name   string
	of     reflect.Type // nil: a protobuf message, found by its name
	append func(dst []byte, msg any) ([]byte, error)
	decode func(body []byte) (any, error)
}

// JSON encodes messages of type T as JSON (encoding/json). T may be a pointer.
func JSON[T any](name string) Type {
	return Type{name, reflect.TypeFor[T](), appendJSON, func(body []byte) (any, error) {
		var msg T
		err := json.Unmarshal(body, &msg)
		return msg, err
	}}
}

// Own encodes messages of type T with a custom codec. T may be a pointer.
//
// encode appends to dst, as append does, and returns the result. It does not see the bytes before.
// decode must not keep body, which is overwritten later: it copies the bytes that it needs. The
// bytes may come from an untrusted peer, so decode has to return an error for invalid ones.
func Own[T any](name string, encode func(dst []byte, msg T) ([]byte, error), decode func(body []byte) (T, error)) Type {
	if encode == nil || decode == nil {
		return Type{name: name, of: reflect.TypeFor[T]()}
	}
	return Type{
		name, reflect.TypeFor[T](),
		func(dst []byte, msg any) ([]byte, error) { return encode(dst, msg.(T)) },
		func(body []byte) (any, error) { return decode(body) },
	}
}

// protobufType returns the Type of a generated message.
func protobufType(of protoreflect.MessageType) *Type {
	return &Type{name: string(of.Descriptor().FullName()), append: appendProto, decode: decodeProto(of)}
}

// decodeProto returns a function that decodes messages of a type.
func decodeProto(of protoreflect.MessageType) func(body []byte) (any, error) {
	fresh := func() proto.Message { return of.New().Interface() }
	if t := generatedType(of); t != nil { // half the time of New
		fresh = func() proto.Message { return reflect.New(t.Elem()).Interface().(proto.Message) }
	}
	return func(body []byte) (any, error) {
		msg := fresh()
		err := proto.UnmarshalOptions{Merge: true}.Unmarshal(body, msg) // msg is new
		return msg, err
	}
}

// generatedType returns the Go type that protoc has made of a message. All its values are that
// message. nil: none, and one Go type may stand for many messages.
func generatedType(of protoreflect.MessageType) reflect.Type {
	if info, ok := of.(*protoimpl.MessageInfo); ok {
		return info.GoReflectType
	}
	return nil
}

// anyProtobuf encodes messages without a generated type. Each has its own name.
var anyProtobuf = Type{append: appendProto}

func appendProto(dst []byte, msg any) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, msg.(proto.Message))
}

// encoder is a json.Encoder that appends. json.Marshal would make a slice for each message.
type encoder struct {
	out  []byte
	json *json.Encoder
}

func (e *encoder) Write(p []byte) (int, error) {
	e.out = append(e.out, p...)
	return len(p), nil
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(e)
	return e
}}

func appendJSON(dst []byte, msg any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.out = dst
	err := e.json.Encode(msg)
	out := e.out
	e.out = nil
	encoders.Put(e) // not after a panic
	return bytes.TrimSuffix(out, []byte("\n")), err
}

// encode appends msg's bytes to dst. The codec can neither see nor change dst's bytes.
func (t *Type) encode(dst []byte, msg any) (out []byte, err error) {
	own, err := t.tryAppend(dst[len(dst):], msg)
	switch {
	case err != nil:
		return dst, err
	case len(own) == 0:
		return dst, nil
	case cap(dst)-len(dst) >= len(own) && &dst[:len(dst)+1][len(dst)] == &own[0]:
		return dst[:len(dst)+len(own)], nil // already in place
	}
	return append(dst, own...), nil
}

// tryAppend calls the codec, and returns its panic as an error.
func (t *Type) tryAppend(room []byte, msg any) (own []byte, err error) {
	defer recoverPanic(&err)
	return t.append(room, msg)
}

// tryDecode decodes body, and returns the codec's panic as an error.
func (t *Type) tryDecode(body []byte) (msg any, err error) {
	defer recoverPanic(&err)
	if msg, err = t.decode(body); err == nil && isNil(msg) {
		err = fmt.Errorf("the codec has returned no message: %w", ErrNil)
	}
	return msg, err
}

func recoverPanic(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{v, debug.Stack()}
	}
}

// isNil reports whether there is no message.
func isNil(msg any) bool {
	if msg == nil {
		return true
	}
	v := reflect.ValueOf(msg)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
