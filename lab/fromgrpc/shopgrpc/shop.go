// Package shopgrpc is package shop's service as gRPC's generator makes it.
package shopgrpc

import "github.com/rdmactor/rdmactor/lab/fromgrpc/shop"

//go:generate protoc -I../../.. --go-grpc_out=../../.. --go-grpc_opt=module=github.com/rdmactor/rdmactor,Mlab/fromgrpc/shop/orders.proto=github.com/rdmactor/rdmactor/lab/fromgrpc/shopgrpc;shopgrpc lab/fromgrpc/shop/orders.proto

// The messages that the generated code expects in its package.
type (
	GetRequest = shop.GetRequest
	Order      = shop.Order
	PutReply   = shop.PutReply
)
