// Package kv contains what the store's server and its clients share: the service, which is
// generated from kv.proto, and its errors. protoc-gen-go has the version in kv.pb.go.
package kv

import "github.com/rdmactor/rdmactor/rpc"

//go:generate go build -C ../../../cmd/protoc-gen-go-rdmactor -o ../../protoc-gen-go-rdmactor .
//go:generate protoc -I../../.. --plugin=../../../protoc-gen-go-rdmactor --go_out=../../.. --go_opt=paths=source_relative --go-rdmactor_out=../../.. --go-rdmactor_opt=paths=source_relative examples/rpc/kv/kv.proto
//go:generate rm ../../../protoc-gen-go-rdmactor

// The errors of calls, besides rpc's. The codes are sent on the wire, so a number must never be
// reused for something else.
var (
	ErrNotFound = rpc.RegisterCode(rpc.FirstCode+0, "no such key")
	ErrChanged  = rpc.RegisterCode(rpc.FirstCode+1, "the key has another revision")
	ErrFull     = rpc.RegisterCode(rpc.FirstCode+2, "the store is full")
	ErrSlow     = rpc.RegisterCode(rpc.FirstCode+3, "the watcher does not read as fast as keys change")
)
