// Package kv contains what the store's server and its clients share: the calls, their messages, and
// their errors.
package kv

import "github.com/rdmactor/rdmactor/rpc"

// protoc --go_out=. --go_opt=paths=source_relative examples/rpc/kv/kv.proto, with protoc-gen-go of
// the version in kv.pb.go, writes that file. The calls need no generator:
var (
	// Get returns an entry, or ErrNotFound.
	Get = rpc.NewMethod[KeyRequest, GetReply]("kv.Get", rpc.MethodConfig{Idempotent: true})
	// Put sets a key, whether or not it exists.
	Put = rpc.NewMethod[Entry, RevisionReply]("kv.Put", rpc.MethodConfig{})
	// CompareAndSwap sets a key that has not changed since the caller read it. Otherwise it fails
	// with ErrChanged. That error's details are a RevisionReply with the key's current revision.
	CompareAndSwap = rpc.NewMethod[CompareAndSwapRequest, RevisionReply]("kv.CompareAndSwap", rpc.MethodConfig{})
	// Delete removes a key, or fails with ErrNotFound.
	Delete = rpc.NewMethod[KeyRequest, RevisionReply]("kv.Delete", rpc.MethodConfig{})
	// List returns a page of entries in the order of their keys.
	List = rpc.NewMethod[ListRequest, ListReply]("kv.List", rpc.MethodConfig{Idempotent: true})
	// Watch streams the changes of the keys with a prefix: those after a revision, or first all
	// entries and then all changes. A watcher that names a revision of another store, with another
	// epoch, also gets all entries first. These have no revision. A watcher may later resume after
	// a revision if it has received the Change with it. ErrCompacted: the watcher is too far
	// behind, and has to start again.
	Watch = rpc.NewStream[WatchRequest, Change]("kv.Watch", rpc.MethodConfig{})
)

// The errors of calls, besides rpc's. The codes are sent on the wire, so a number must never be
// reused for something else.
var (
	ErrNotFound  = rpc.RegisterCode(rpc.FirstCode+0, "no such key")
	ErrChanged   = rpc.RegisterCode(rpc.FirstCode+1, "the key has another revision")
	ErrInvalid   = rpc.RegisterCode(rpc.FirstCode+2, "the key is empty, or key or value are too large")
	ErrFull      = rpc.RegisterCode(rpc.FirstCode+3, "the store is full")
	ErrCompacted = rpc.RegisterCode(rpc.FirstCode+4, "the changes after that revision are not kept any more")
)
