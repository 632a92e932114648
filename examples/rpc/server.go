package main

import (
	"context"
	"errors"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpcreflect"
)

// maxMessage is the size of the largest value, with some room for its key and the encoding.
const maxMessage = maxValue + 64<<10

// newServer makes a store callable. Nothing in the store blocks, so calls are answered on the loop
// on which they arrive. A watch blocks, and so it has a goroutine.
func newServer(rt *rdma.Runtime, s *store) *rpc.Server {
	srv := rpc.NewServer(rt, rpc.ServerConfig{MaxMessage: maxMessage, Credits: 32})
	kv.RegisterStoreServer(srv, &service{store: s, draining: srv.Draining()}, rpc.HandlerConfig{OnLoop: true})
	rpcreflect.Register(srv) // for rdmactor list and rdmactor call
	return srv
}

// service answers the calls of a store.
type service struct {
	kv.UnimplementedStoreServer
	*store
	draining <-chan struct{}
}

func (s *service) Get(_ context.Context, q *kv.KeyRequest) (*kv.GetReply, error) {
	e, err := s.get(q.Key)
	return &kv.GetReply{Entry: e}, err
}

func (s *service) Put(_ context.Context, q *kv.Entry) (*kv.RevisionReply, error) {
	return revision(s.put(q.Key, q.Value))
}

func (s *service) CompareAndSwap(_ context.Context, q *kv.CompareAndSwapRequest) (*kv.RevisionReply, error) {
	reply, err := revision(s.compareAndSwap(q.Key, q.Revision, q.Value))
	if errors.Is(err, kv.ErrChanged) {
		return nil, withDetails(kv.ErrChanged, q.Key, reply)
	}
	return reply, err
}

func (s *service) Delete(_ context.Context, q *kv.KeyRequest) (*kv.RevisionReply, error) {
	return revision(s.remove(q.Key))
}

func (s *service) List(_ context.Context, q *kv.ListRequest) (*kv.ListReply, error) {
	return s.list(q.Prefix, q.After, int(q.Limit)), nil
}

func (s *service) Watch(ctx context.Context, q *kv.WatchRequest, out *rpc.Sender[kv.Change]) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// a watch ends only here: its client continues at another server, or at this one's successor
	go func() {
		select {
		case <-s.draining:
			stop(rpc.ErrDraining)
		case <-ctx.Done():
		}
	}()
	if s.knows(q.Epoch, q.After) {
		if err := out.Send(&kv.Change{Epoch: s.epoch, Revision: q.After}); err != nil {
			return err
		}
		return s.watch(ctx, q.Prefix, q.After, out.Send)
	}
	if err := out.Send(&kv.Change{Epoch: s.epoch, Anew: true}); err != nil {
		return err
	}
	after, err := snapshot(s.store, q.Prefix, out)
	if err != nil {
		return err
	}
	return s.watch(ctx, q.Prefix, after, out.Send)
}

// revision returns the answer to a change.
func revision(r uint64, err error) (*kv.RevisionReply, error) {
	return &kv.RevisionReply{Revision: r}, err
}

// snapshot sends all entries, and returns the revision after which the changes continue. It sends
// that revision last, because a watcher that is cut off earlier has not seen everything up to any
// revision. If an entry changes between two pages, it may be sent both as it was and as it is now.
// Its change follows in any case.
func snapshot(s *store, prefix string, out *rpc.Sender[kv.Change]) (revision uint64, err error) {
	page := s.list(prefix, "", 0)
	revision = page.Revision
	for {
		last := ""
		for _, e := range page.Entries {
			if err := out.Send(&kv.Change{Entry: e}); err != nil {
				return 0, err
			}
			last = e.Key
		}
		if !page.More {
			return revision, out.Send(&kv.Change{Revision: revision})
		}
		page = s.list(prefix, last, 0)
	}
}

// withDetails returns an error with details.
func withDetails[D any](of error, message string, details *D) error {
	e, err := rpc.NewError(of, message, details)
	if err != nil {
		return err
	}
	return e
}
