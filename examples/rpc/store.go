package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/google/btree"

	"github.com/rdmactor/rdmactor/examples/rpc/kv"
)

// Limits of the store: how much callers may make it keep, or send at a time.
const (
	maxKey     = 1 << 10
	maxValue   = 1 << 20
	maxEntries = 1 << 20
	maxBytes   = 256 << 20 // of keys and values
	maxPage    = 256       // entries of one List
	pageBytes  = 256 << 10 // of keys and values in one List, unless one entry alone has more

	history      = 1 << 14  // changes that a watcher may be behind
	historyBytes = 64 << 20 // of keys and values in the changes
)

// store has keys with their values. Each entry has the store's revision after its last change.
// Entries that were handed out are never changed, so that they can be sent without a copy. Any
// goroutine.
type store struct {
	// distinguishes its revisions from those of an earlier server's store; never 0
	epoch uint64

	mu       sync.Mutex
	entries  *btree.BTreeG[*kv.Entry]
	bytes    int // of all entries
	revision uint64
	changes  [history]*kv.Change // the change of revision r is at r modulo history
	// revision of the oldest change; later than revision if there is none
	oldest  uint64
	past    int           // bytes in changes
	changed chan struct{} // closed at the next change
}

func newStore() *store {
	return &store{
		epoch:   rand.Uint64() | 1,
		entries: btree.NewG(32, func(a, b *kv.Entry) bool { return a.Key < b.Key }),
		oldest:  1,
		changed: make(chan struct{}),
	}
}

// size returns the bytes of an entry, 0 for none.
func size(e *kv.Entry) int { return len(e.GetKey()) + len(e.GetValue()) }

func (s *store) get(key string) (*kv.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(&kv.Entry{Key: key})
	if !ok {
		return nil, kv.ErrNotFound
	}
	return e, nil
}

// put sets a key and returns the store's new revision. The caller must not change value afterwards.
func (s *store) put(key string, value []byte) (revision uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set(key, value)
}

// compareAndSwap sets a key if it still has the given revision. A key that does not exist has
// revision 0. If the key has another revision, compareAndSwap returns that and kv.ErrChanged.
func (s *store) compareAndSwap(key string, revision uint64, value []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, _ := s.entries.Get(&kv.Entry{Key: key}); e.GetRevision() != revision {
		return e.GetRevision(), kv.ErrChanged
	}
	return s.set(key, value)
}

func (s *store) set(key string, value []byte) (uint64, error) {
	e := &kv.Entry{Key: key, Value: value, Revision: s.revision + 1}
	old, had := s.entries.Get(e)
	grown := size(e) - size(old)
	switch {
	case key == "" || len(key) > maxKey || len(value) > maxValue:
		return 0, kv.ErrInvalid
	case !had && s.entries.Len() >= maxEntries, grown > 0 && s.bytes+grown > maxBytes:
		return 0, kv.ErrFull
	}
	s.entries.ReplaceOrInsert(e)
	s.bytes += grown
	s.record(&kv.Change{Entry: e, Revision: e.Revision})
	return s.revision, nil
}

func (s *store) remove(key string) (revision uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.entries.Delete(&kv.Entry{Key: key})
	if !ok {
		return 0, kv.ErrNotFound
	}
	s.bytes -= size(old)
	e := &kv.Entry{Key: key, Revision: s.revision + 1}
	s.record(&kv.Change{Entry: e, Revision: e.Revision, Deleted: true})
	return s.revision, nil
}

// record adds a change to the history, drops the oldest changes beyond its limits, and wakes the
// waiting watchers.
func (s *store) record(c *kv.Change) {
	s.revision++
	s.past += size(c.Entry)
	for s.revision-s.oldest >= history || s.past > historyBytes {
		first := &s.changes[s.oldest%history]
		s.past -= size((*first).Entry)
		*first = nil
		s.oldest++
	}
	s.changes[s.revision%history] = c
	close(s.changed)
	s.changed = make(chan struct{})
}

// list returns the keys with a prefix that come after a key, in order: at most limit, and as many
// as fit into a page.
func (s *store) list(prefix, after string, limit int) *kv.ListReply {
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &kv.ListReply{Revision: s.revision}
	bytes := 0
	s.entries.AscendGreaterOrEqual(&kv.Entry{Key: max(prefix, after)}, func(e *kv.Entry) bool {
		if !strings.HasPrefix(e.Key, prefix) {
			return false
		}
		if e.Key == after {
			return true
		}
		bytes += size(e)
		if len(page.Entries) == limit || len(page.Entries) > 0 && bytes > pageBytes {
			page.More = true
			return false
		}
		page.Entries = append(page.Entries, e)
		return true
	})
	return page
}

// knows reports whether a watcher can resume after a revision. epoch is that of the store whose
// revision it is; 0: unknown.
func (s *store) knows(epoch, revision uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return revision > 0 && revision <= s.revision && (epoch == 0 || epoch == s.epoch)
}

// watch calls send for every change of a key with the prefix and a revision greater than after, in
// order, until ctx ends or send fails. It returns kv.ErrCompacted if the watcher is too far behind:
// the store keeps nothing for it.
func (s *store) watch(ctx context.Context, prefix string, after uint64, send func(*kv.Change) error) error {
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
				return context.Cause(ctx)
			}
		}
		after = c.Entry.Revision
		if strings.HasPrefix(c.Entry.Key, prefix) {
			if err := send(c); err != nil {
				return err
			}
		}
	}
}

// next returns the change after a revision. If there is none yet, it returns a channel that is
// closed at the next change.
func (s *store) next(after uint64) (*kv.Change, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case after >= s.revision:
		return nil, s.changed, nil
	case after+1 < s.oldest:
		return nil, nil, kv.ErrCompacted
	}
	return s.changes[(after+1)%history], nil, nil
}
