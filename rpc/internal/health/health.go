// Package health has the messages of gRPC's health service (grpc.health.v1.Health), for package
// rpc, whose pools watch it, and for package rpchealth, which serves it.
//
// The messages are written by hand: generated code would register grpc/health/v1/health.proto when
// the program starts, which panics in a program with gRPC's.
package health

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// The names of the service's methods.
const (
	Check = "grpc.health.v1.Health/Check"
	Watch = "grpc.health.v1.Health/Watch"
)

// Request is a grpc.health.v1.HealthCheckRequest: the name of a service, "" for the whole server.
type Request struct{ Service string }

// AppendBinary implements encoding.BinaryAppender.
func (q *Request) AppendBinary(b []byte) ([]byte, error) {
	if q.Service == "" {
		return b, nil
	}
	return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), q.Service), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (q *Request) UnmarshalBinary(b []byte) error {
	return fields(b, func(n protowire.Number, t protowire.Type, b []byte) int {
		if n != 1 || t != protowire.BytesType {
			return 0
		}
		v, size := protowire.ConsumeBytes(b)
		q.Service = string(v)
		return size
	})
}

// Status is a grpc.health.v1.HealthCheckResponse: its only field.
type Status uint64

// The states of a service.
const (
	Unset Status = iota
	Serving
	NotServing
	ServiceUnknown
)

// AppendBinary implements encoding.BinaryAppender.
func (s *Status) AppendBinary(b []byte) ([]byte, error) {
	return protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), uint64(*s)), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (s *Status) UnmarshalBinary(b []byte) error {
	return fields(b, func(n protowire.Number, t protowire.Type, b []byte) int {
		if n != 1 || t != protowire.VarintType {
			return 0
		}
		v, size := protowire.ConsumeVarint(b)
		*s = Status(v)
		return size
	})
}

// fields calls take with each field of a message. take returns the size of the field's value; 0: it
// does not know the field, which is skipped.
func fields(b []byte, take func(n protowire.Number, t protowire.Type, b []byte) int) error {
	for len(b) > 0 {
		n, t, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if size = take(n, t, b); size == 0 {
			size = protowire.ConsumeFieldValue(n, t, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
	}
	return nil
}

// RegisterFile describes the service to rpchttp and rpcreflect, unless generated code has.
var RegisterFile = sync.OnceFunc(func() {
	if _, err := protoregistry.GlobalFiles.FindDescriptorByName("grpc.health.v1.Health"); err == nil {
		return
	}
	field := func(name string, t descriptorpb.FieldDescriptorProto_Type, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{
			Name: &name, JsonName: &name, Number: proto.Int32(1), Type: &t, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		if of != "" {
			f.TypeName = &of
		}
		return f
	}
	method := func(name string, streams bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: proto.String(".grpc.health.v1.HealthCheckRequest"),
			OutputType: proto.String(".grpc.health.v1.HealthCheckResponse"), ServerStreaming: &streams,
		}
	}
	states := &descriptorpb.EnumDescriptorProto{Name: proto.String("ServingStatus")}
	for i, name := range []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"} {
		states.Value = append(states.Value, &descriptorpb.EnumValueDescriptorProto{Name: &name, Number: proto.Int32(int32(i))})
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("grpc/health/v1/health.proto"), Package: proto.String("grpc.health.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{
				Name:  proto.String("HealthCheckRequest"),
				Field: []*descriptorpb.FieldDescriptorProto{field("service", descriptorpb.FieldDescriptorProto_TYPE_STRING, "")},
			},
			{
				Name: proto.String("HealthCheckResponse"), EnumType: []*descriptorpb.EnumDescriptorProto{states},
				Field: []*descriptorpb.FieldDescriptorProto{
					field("status", descriptorpb.FieldDescriptorProto_TYPE_ENUM, ".grpc.health.v1.HealthCheckResponse.ServingStatus"),
				},
			},
		},
		Service: []*descriptorpb.ServiceDescriptorProto{
			{Name: proto.String("Health"), Method: []*descriptorpb.MethodDescriptorProto{method("Check", false), method("Watch", true)}},
		},
	}, nil)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err) // the descriptor is a constant
	}
})
