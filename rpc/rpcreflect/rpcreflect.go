// Package rpcreflect lets tools call the methods of a server that they were not compiled with, as
// gRPC's server reflection does: a server reports the names of its methods, and describes the
// protobuf services among them. rdmactor list and rdmactor call use it.
package rpcreflect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/rpc"
)

// The service's methods: list sends the name of each method, and file the files that describe a
// service, each behind those that it imports.
var (
	list = rpc.NewStream[emptypb.Empty, wrapperspb.StringValue]("rdmactor.Reflection/List", rpc.MethodConfig{Idempotent: true})
	file = rpc.NewStream[wrapperspb.StringValue, descriptorpb.FileDescriptorProto]("rdmactor.Reflection/File", rpc.MethodConfig{Idempotent: true})
)

// Register adds the service to a server, before Listen. Whoever may connect to the server may then
// list its methods: an interceptor can refuse it ("rdmactor.Reflection/List", ".../File").
func Register(s *rpc.Server) {
	rpc.HandleStream(s, list, func(_ context.Context, _ *emptypb.Empty, out *rpc.Sender[wrapperspb.StringValue]) error {
		for _, m := range s.Inspect() {
			if strings.HasPrefix(m.Method, "rdmactor.Reflection/") || m.Method == "unknown" {
				continue
			}
			if err := out.Send(wrapperspb.String(m.Method)); err != nil {
				return err
			}
		}
		return nil
	})
	rpc.HandleStream(s, file, func(_ context.Context, q *wrapperspb.StringValue, out *rpc.Sender[descriptorpb.FileDescriptorProto]) error {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(q.Value))
		if err != nil {
			return &rpc.Error{Code: rpc.CodeUnknownMethod, Message: fmt.Sprintf("%q: %v", q.Value, err)}
		}
		return sendFile(d.ParentFile(), make(map[string]bool), out)
	})
}

// sendFile sends a file behind those that it imports.
func sendFile(f protoreflect.FileDescriptor, sent map[string]bool, out *rpc.Sender[descriptorpb.FileDescriptorProto]) error {
	if sent[f.Path()] {
		return nil
	}
	sent[f.Path()] = true
	for i := range f.Imports().Len() {
		if err := sendFile(f.Imports().Get(i).FileDescriptor, sent, out); err != nil {
			return err
		}
	}
	return out.Send(protodesc.ToFileDescriptorProto(f))
}

// List returns the names of a server's methods, in order.
func List(ctx context.Context, c *rpc.Client) (names []string, err error) {
	for name, err := range rpc.Items(ctx, c, list, &emptypb.Empty{}) {
		if err != nil {
			return nil, err
		}
		if names = append(names, name.Value); len(names) > mostNames {
			return nil, fmt.Errorf("rpcreflect: the server has more than %d methods", mostNames)
		}
	}
	return names, nil
}

// ErrNoService is in the error of Find if the server does not describe the method: it is not of a
// protobuf service, or has no generated code there.
var ErrNoService = errors.New("no protobuf service describes it")

// They bound what a server describes.
const (
	mostNames = 10_000
	mostFiles = 1000
	mostBytes = 16 << 20
)

// Find returns the description of a method by its name, "shop.Orders/Get".
func Find(ctx context.Context, c *rpc.Client, method string) (protoreflect.MethodDescriptor, error) {
	service, name, ok := strings.Cut(method, "/")
	if !ok {
		return nil, fmt.Errorf("%s: %w", method, ErrNoService)
	}
	var set descriptorpb.FileDescriptorSet
	size := 0
	for f, err := range rpc.Items(ctx, c, file, wrapperspb.String(service)) {
		if e, ok := errors.AsType[*rpc.Error](err); ok && e.Code == rpc.CodeUnknownMethod && e.Fate == rpc.FateAnswered {
			return nil, fmt.Errorf("%s: %w: %w", method, ErrNoService, err)
		}
		if err != nil {
			return nil, err
		}
		set.File = append(set.File, f)
		if size += proto.Size(f); len(set.File) > mostFiles || size > mostBytes {
			return nil, fmt.Errorf("%s: its description has more than %d files or %d bytes", method, mostFiles, mostBytes)
		}
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	d, err := files.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if s, ok := d.(protoreflect.ServiceDescriptor); ok {
		if m := s.Methods().ByName(protoreflect.Name(name)); m != nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", method, ErrNoService)
}
