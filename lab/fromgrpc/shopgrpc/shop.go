// Package shopgrpc is package shop's service as gRPC's generator makes it.
package shopgrpc

import "github.com/rdmactor/rdmactor/internal/shop"

//go:generate protoc -I../../.. --go-grpc_out=../../.. --go-grpc_opt=module=github.com/rdmactor/rdmactor,Minternal/shop/shop.proto=github.com/rdmactor/rdmactor/lab/fromgrpc/shopgrpc;shopgrpc internal/shop/shop.proto

// The messages that the generated code expects in its package.
type (
	GetRequest = shop.GetRequest
	Order      = shop.Order
)
