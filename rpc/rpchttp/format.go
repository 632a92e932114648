package rpchttp

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// format is how messages are written in HTTP bodies. Between the Handler and the server they are
// protobuf's bytes.
type format struct {
	name             string
	fromHTTP, toHTTP func(b []byte, of protoreflect.MessageDescriptor) ([]byte, error)
}

var formats = map[string]*format{
	"proto": {"proto", unchangedBytes, unchangedBytes},
	"json":  {"json", fromJSON, toJSON},
}

func unchangedBytes(b []byte, _ protoreflect.MessageDescriptor) ([]byte, error) { return b, nil }

func fromJSON(b []byte, of protoreflect.MessageDescriptor) ([]byte, error) {
	m := newMessage(of)
	if len(b) > 0 { // an empty body is an empty message
		if err := protojson.Unmarshal(b, m); err != nil {
			return nil, err
		}
	}
	return proto.Marshal(m)
}

func toJSON(b []byte, of protoreflect.MessageDescriptor) ([]byte, error) {
	m := newMessage(of)
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, err
	}
	return protojson.Marshal(m)
}

// newMessage makes a message of the program's own type, if it has one.
func newMessage(of protoreflect.MessageDescriptor) proto.Message {
	if t, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName()); err == nil {
		return t.New().Interface()
	}
	return dynamicpb.NewMessage(of)
}
