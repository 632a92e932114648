// Protoc-gen-go-rdmactor is a plugin of protoc and buf that generates the clients and servers of
// protobuf's services for package rpc. protoc-gen-go generates the messages, into the same package:
//
//	go -C ../rdmactor install ./cmd/protoc-gen-go-rdmactor  # from a checkout of this repository
//	protoc --go_out=. --go_opt=paths=source_relative \
//		--go-rdmactor_out=. --go-rdmactor_opt=paths=source_relative shop.proto
//
// or, as a plugin in buf.gen.yaml:
//
//   - local: protoc-gen-go-rdmactor
//     out: .
//     opt: paths=source_relative
//
// For a service Orders the file shop_rdmactor.pb.go has
//
//   - OrdersClient, which calls it, NewOrdersClient, and OrdersAPI, the interface of its methods;
//   - OrdersServer, the interface of a handler, RegisterOrdersServer, and UnimplementedOrdersServer,
//     which every handler embeds, so that a method that is added to the service does not break it;
//   - for each method, such as Get, OrdersGet for package rpc's functions, and Orders_Get_Name, its
//     full name: "shop.v1.Orders/Get".
//
// The option package_suffix=rdma puts the file into a separate package, shoprdma in a folder of
// that name. Then gRPC's code can be generated beside the messages, whose names are the same.
//
// Methods with the option idempotency_level are idempotent: rpc.Retry may repeat them.
package main

import (
	"flag"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() { runPlugin(protogen.Options.Run) }

// runPlugin passes the options, and the function that generates the files, to with.
func runPlugin(with func(protogen.Options, func(*protogen.Plugin) error)) {
	var flags flag.FlagSet
	suffix := flags.String("package_suffix", "", "generate into a package with this suffix")
	with(protogen.Options{ParamFunc: flags.Set}, func(p *protogen.Plugin) error { return generateFiles(p, *suffix) })
}

// generateFiles generates the files of a request.
func generateFiles(p *protogen.Plugin, suffix string) error {
	p.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL | pluginpb.CodeGeneratorResponse_FEATURE_SUPPORTS_EDITIONS)
	p.SupportedEditionsMinimum = descriptorpb.Edition_EDITION_PROTO2
	p.SupportedEditionsMaximum = descriptorpb.Edition_EDITION_2024
	for _, f := range p.Files {
		if f.Generate && len(f.Services) > 0 {
			generateFile(p, f, suffix)
		}
	}
	return nil
}
