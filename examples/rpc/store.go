package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/google/btree"

	"github.com/rdmactor/rdmactor/examples/rpc/kvpb"
)

// Limits of the store: what one caller may make it hold or send at a time.
const (
	maxKey     = 1 << 10
	maxValue   = 1 << 20
	maxEntries = 1 << 20
	maxPage    = 256       // entries of one List
	pageBytes  = 256 << 10 // of keys and values in one List, unless one entry alone has more
	history    = 1 << 14   // changes that a watcher may be behind
)

// What a caller can do wrong, or find.
var (
	errNotFound  = errors.New("no such key")
	errChanged   = errors.New("the key has another revision")
	errTooLarge  = errors.New("key or value too large, or the key is empty")
	errFull      = errors.New("the store is full")
	errCompacted = errors.New("the changes after that revision are not kept any more: list, and watch from there")
)

// store is keys and values, each with the revision of the store that its last change made. What it hands out is never changed again,
// so that it can be sent without a copy. Any goroutine.
type store struct {
	mu       sync.Mutex
	entries  *btree.BTreeG[*kvpb.Entry]
	revision uint64
	changes  [history]*kvpb.Change // the change of revision r is at r modulo history
	changed  chan struct{}         // closed at the next change
}

func newStore() *store {
	return &store{
		entries: btree.NewG(32, func(a, b *kvpb.Entry) bool { return a.Key < b.Key }),
		changed: make(chan struct{}),
	}
}

func (s *store) get(key string) (*kvpb.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(&kvpb.Entry{Key: key})
	if !ok {
		return nil, errNotFound
	}
	return e, nil
}

// put sets a key and gives the store's new revision.
func (s *store) put(key string, value []byte) (revision uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set(key, value)
}

// compareAndSwap sets a key that still has the given revision: 0 is that of a key that does not exist. If it has another, that is what
// it gives, with errChanged.
func (s *store) compareAndSwap(key string, revision uint64, value []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, _ := s.entries.Get(&kvpb.Entry{Key: key}); e.GetRevision() != revision {
		return e.GetRevision(), errChanged
	}
	return s.set(key, value)
}

func (s *store) set(key string, value []byte) (uint64, error) {
	e := &kvpb.Entry{Key: key, Value: bytes.Clone(value), Revision: s.revision + 1}
	switch {
	case key == "" || len(key) > maxKey || len(value) > maxValue:
		return 0, errTooLarge
	case s.entries.Len() >= maxEntries && !s.entries.Has(e):
		return 0, errFull
	}
	s.entries.ReplaceOrInsert(e)
	s.record(&kvpb.Change{Entry: e})
	return s.revision, nil
}

func (s *store) remove(key string) (revision uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.entries.Delete(&kvpb.Entry{Key: key}); !ok {
		return 0, errNotFound
	}
	s.record(&kvpb.Change{Entry: &kvpb.Entry{Key: key, Revision: s.revision + 1}, Deleted: true})
	return s.revision, nil
}

// record makes a change the newest, and wakes up who waits for one.
func (s *store) record(c *kvpb.Change) {
	s.revision++
	s.changes[s.revision%history] = c
	close(s.changed)
	s.changed = make(chan struct{})
}

// list gives the keys with a prefix that come after a key, in order, at most limit of them or as many as a page holds.
func (s *store) list(prefix, after string, limit int) *kvpb.ListReply {
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &kvpb.ListReply{Revision: s.revision}
	size := 0
	s.entries.AscendGreaterOrEqual(&kvpb.Entry{Key: max(prefix, after)}, func(e *kvpb.Entry) bool {
		if !strings.HasPrefix(e.Key, prefix) {
			return false
		}
		if e.Key == after {
			return true
		}
		size += len(e.Key) + len(e.Value)
		if len(page.Entries) == limit || len(page.Entries) > 0 && size > pageBytes {
			page.More = true
			return false
		}
		page.Entries = append(page.Entries, e)
		return true
	})
	return page
}

// watch calls tell for every change of a key with the prefix and a revision greater than after, in order, until ctx ends or tell
// fails. A watcher that is too far behind is told so: nothing is kept for it.
func (s *store) watch(ctx context.Context, prefix string, after uint64, tell func(*kvpb.Change) error) error {
	for {
		c, changed, err := s.next(after)
		if err != nil {
			return err
		}
		if c == nil {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		after = c.Entry.Revision
		if strings.HasPrefix(c.Entry.Key, prefix) {
			if err := tell(c); err != nil {
				return err
			}
		}
	}
}

// next is the change behind a revision, or what is closed when there is one.
func (s *store) next(after uint64) (*kvpb.Change, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case after >= s.revision:
		return nil, s.changed, nil
	case s.revision-after > history:
		return nil, nil, errCompacted
	}
	return s.changes[(after+1)%history], nil, nil
}
