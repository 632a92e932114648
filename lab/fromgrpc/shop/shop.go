// Package shop is generated from orders.proto: its messages, and its service for rpc.
package shop

//go:generate go build -C ../../../cmd/protoc-gen-go-rdmactor -o ../../protoc-gen-go-rdmactor .
//go:generate protoc -I../../.. --plugin=../../../protoc-gen-go-rdmactor --go_out=../../.. --go_opt=paths=source_relative --go-rdmactor_out=../../.. --go-rdmactor_opt=paths=source_relative lab/fromgrpc/shop/orders.proto
//go:generate rm ../../../protoc-gen-go-rdmactor
