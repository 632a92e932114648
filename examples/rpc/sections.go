package main

import (
	"time"

	"github.com/rdmactor/rdmactor/examples/live"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/rpc"
)

// The store's sections of the live page.

// figures are those of the store and of the calls to it.
type figures struct {
	Keys          int
	StoredBytes   int // keys and values
	Revision      uint64
	ChangesKept   int // changes from which a watch can still resume
	ChangesBytes  int
	CallsInFlight int // including watches
}

func (s *store) figures() figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return figures{
		Keys: s.entries.Len(), StoredBytes: s.bytes, Revision: s.revision,
		ChangesKept: int(s.revision + 1 - s.oldest), ChangesBytes: s.past,
	}
}

// calls are those of one method: the fields of rpc.MethodInfo that fit on a screen.
type calls struct {
	Method    string
	InFlight  int
	PerSecond float64
	OK        uint64
	Failed    uint64
	Refused   uint64         // for any reason
	P50, P99  time.Duration  // of the last 10 to 20 s
	Errors    rpc.CodeCounts // of the failed calls
}

func callsOf(srv *rpc.Server, recent *live.Recent) (rows []calls) {
	for _, m := range recent.Of(srv.Inspect()) {
		r := m.Refused
		rows = append(rows, calls{
			m.Method, m.InFlight, m.PerSecond, m.OK, m.Failed,
			r.Limit + r.Memory + r.Draining + r.Connection + r.Method + r.Message + r.Context, m.P50, m.P99, m.Errors,
		})
	}
	return rows
}

func sectionsOf(srv *rpc.Server, s *store) []inspect.Section {
	var recent live.Recent
	return []inspect.Section{
		inspect.Rows("methods", "Methods", func() []calls { return callsOf(srv, &recent) }),
		inspect.Rows("store", "Store", func() []figures {
			f := s.figures()
			f.CallsInFlight = srv.InFlight()
			return []figures{f}
		}),
	}
}
