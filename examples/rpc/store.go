package main

import (
	"context"
	"strings"
	"sync"

	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/rpc"
)

const (
	maxBytes = 256 << 20 // of all keys and values
	behind   = 256       // changes that a watcher may be behind
)

// store is the service kv.Store. Its entries are never changed, so that they can be sent without a
// copy. Any goroutine.
type store struct {
	kv.UnimplementedStoreServer
	draining <-chan struct{} // of the server

	mu       sync.Mutex
	entries  map[string]*kv.Entry
	bytes    int // of all keys and values
	revision uint64
	watchers map[chan *kv.Entry]string // with their prefixes; closed: the watcher is too far behind
}

// registerStore makes a store callable. Get, Put and CompareAndSwap do not block, so they are
// called on the loop of their connection. Watch blocks, and streams always have a goroutine.
func registerStore(srv *rpc.Server) {
	kv.RegisterStoreServer(srv, &store{
		draining: srv.Draining(), entries: make(map[string]*kv.Entry), watchers: make(map[chan *kv.Entry]string),
	}, rpc.HandlerConfig{OnLoop: true})
}

func (s *store) Get(_ context.Context, q *kv.GetRequest) (*kv.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[q.Key]; e != nil {
		return e, nil
	}
	return nil, kv.ErrNotFound
}

func (s *store) Put(_ context.Context, q *kv.PutRequest) (*kv.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setEntry(q.Key, q.Value)
}

func (s *store) CompareAndSwap(_ context.Context, q *kv.CompareAndSwapRequest) (*kv.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.entries[q.Key]
	if old.GetRevision() == q.Revision {
		return s.setEntry(q.Key, q.Value)
	}
	changed, err := rpc.NewError(kv.ErrChanged, q.Key, old)
	if err != nil {
		return nil, err
	}
	return nil, changed
}

// setEntry changes an entry and notifies the watchers. The caller holds mu.
func (s *store) setEntry(key string, value []byte) (*kv.Entry, error) {
	grown := len(key) + len(value)
	if old := s.entries[key]; old != nil {
		grown -= len(key) + len(old.Value)
	}
	if grown > 0 && s.bytes+grown > maxBytes {
		return nil, kv.ErrFull
	}
	s.bytes += grown
	s.revision++
	e := &kv.Entry{Key: key, Value: value, Revision: s.revision}
	s.entries[key] = e
	for changes, prefix := range s.watchers {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		select {
		case changes <- e:
		default:
			delete(s.watchers, changes)
			close(changes)
		}
	}
	return e, nil
}

// Watch sends entries at the pace of its client.
func (s *store) Watch(ctx context.Context, q *kv.WatchRequest, out *rpc.Sender[kv.Entry]) error {
	var existing []*kv.Entry
	changes := make(chan *kv.Entry, behind)
	s.mu.Lock()
	for key, e := range s.entries {
		if strings.HasPrefix(key, q.Prefix) {
			existing = append(existing, e)
		}
	}
	s.watchers[changes] = q.Prefix
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, changes)
	}()
	for _, e := range existing {
		if err := out.Send(e); err != nil {
			return err
		}
	}
	for {
		select {
		case e, ok := <-changes:
			if !ok {
				return kv.ErrSlow
			}
			if err := out.Send(e); err != nil {
				return err
			}
		case <-s.draining: // a watch never ends, and the server waits for its calls
			return rpc.ErrDraining
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
