// Package shopgrpc is package shop's service as gRPC's generator makes it.
package shopgrpc

//go:generate protoc -I../../.. --go_out=../../.. --go_opt=paths=source_relative --go-grpc_out=../../.. --go-grpc_opt=paths=source_relative lab/fromgrpc/shopgrpc/orders.proto
