// Package orders describes a service for tests, as generated code does, without generated code.
package orders

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/rpc"
)

type text = wrapperspb.StringValue

// The methods of the service test.Orders. Every message is a google.protobuf.StringValue.
var (
	Get   = rpc.NewMethod[text, text]("test.Orders/Get")
	Watch = rpc.NewStream[text, text]("test.Orders/Watch")
	Put   = rpc.NewClientStream[text, text]("test.Orders/Put")
	Talk  = rpc.NewBidiStream[text, text]("test.Orders/Talk")
)

func init() {
	const message = ".google.protobuf.StringValue"
	method := func(name string, client, server bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: proto.String(message), OutputType: proto.String(message), ClientStreaming: &client, ServerStreaming: &server,
		}
	}
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("test/orders.proto"), Package: proto.String("test"), Syntax: proto.String("proto3"),
		Dependency: []string{"google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Orders"), Method: []*descriptorpb.MethodDescriptorProto{
			method("Get", false, false), method("Watch", false, true), method("Put", true, false), method("Talk", true, true),
		}}},
	}, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(f)
	}
	if err != nil {
		panic(err)
	}
}
