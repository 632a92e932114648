package main

import (
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/rpc"
)

// What the live page shows of the store.

// figures are the store's, and of the calls to it.
type figures struct {
	Keys          int
	StoredBytes   int // keys and values
	Revision      uint64
	ChangesKept   int // that watches can still go back to
	ChangesBytes  int
	CallsInFlight int // and watches
}

func (s *store) figures() figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return figures{
		Keys: s.entries.Len(), StoredBytes: s.bytes, Revision: s.revision,
		ChangesKept: int(s.revision + 1 - s.oldest), ChangesBytes: s.past,
	}
}

func sectionsOf(srv *rpc.Server, s *store) []inspect.Section {
	return []inspect.Section{
		inspect.Rows("store", "Store", func() []figures {
			f := s.figures()
			f.CallsInFlight = srv.InFlight()
			return []figures{f}
		}),
	}
}
