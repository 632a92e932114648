// Package kv is what the store's server and its clients share: the calls, their messages, and the
// errors that can come back.
package kv

import "github.com/rdmactor/rdmactor/rpc"

// protoc --go_out=. --go_opt=paths=source_relative examples/rpc/kv/kv.proto, with protoc-gen-go of
// the version in kv.pb.go, writes that file. The calls need no generator:
var (
	// Get gives an entry, or ErrNotFound.
	Get = rpc.NewMethod[KeyRequest, GetReply]("kv.Get", rpc.MethodConfig{Idempotent: true})
	// Put sets a key to a value, whatever it was.
	Put = rpc.NewMethod[Entry, RevisionReply]("kv.Put", rpc.MethodConfig{})
	// CompareAndSwap sets a key that has not changed since the caller saw it, or fails with
	// ErrChanged, whose details are a RevisionReply with the revision that it has now.
	CompareAndSwap = rpc.NewMethod[CompareAndSwapRequest, RevisionReply]("kv.CompareAndSwap", rpc.MethodConfig{})
	// Delete removes a key, or fails with ErrNotFound.
	Delete = rpc.NewMethod[KeyRequest, RevisionReply]("kv.Delete", rpc.MethodConfig{})
	// List gives a page of entries in the order of their keys.
	List = rpc.NewMethod[ListRequest, ListReply]("kv.List", rpc.MethodConfig{Idempotent: true})
	// Watch streams the changes of a prefix, beginning with what there is, or behind a revision. A
	// watcher whose revision is another store's, of another epoch, gets what there is. It may go on
	// behind a revision when it has seen the Change with that revision. The entries that there are
	// come without one. ErrCompacted: the caller is too far behind, and begins again.
	Watch = rpc.NewStream[WatchRequest, Change]("kv.Watch", rpc.MethodConfig{})
)

// What a call can fail with, besides rpc's own errors. The codes are on the wire: a number is
// never used for something else.
var (
	ErrNotFound  = rpc.RegisterCode(rpc.FirstCode+0, "no such key")
	ErrChanged   = rpc.RegisterCode(rpc.FirstCode+1, "the key has another revision")
	ErrInvalid   = rpc.RegisterCode(rpc.FirstCode+2, "the key is empty, or key or value are too large")
	ErrFull      = rpc.RegisterCode(rpc.FirstCode+3, "the store is full")
	ErrCompacted = rpc.RegisterCode(rpc.FirstCode+4, "the changes after that revision are not kept any more")
)
