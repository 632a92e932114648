package rpc

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// MethodInfo has the counters of a method since the Server or the Client was made. At a client each
// attempt is a call.
type MethodInfo struct {
	// Method is its name, or "unknown": at a server for the calls of all methods that it does not
	// have, and on both sides for methods beyond the first 4,096.
	Method string
	// PerSecond is the number of calls started per second, between the last two calls of Inspect
	// that were a second apart or more. The first one counts from the method's first use.
	PerSecond float64
	P50, P99  time.Duration // since the start, from Latency; for recent ones use Histogram.Since
	InFlight  int           // started and not ended
	Waiting   int           // for a place, worker or request; at a client: to connect or be sent
	Started   uint64        // OK, Failed and InFlight together
	OK        uint64        // calls that ended with an answer, streams that ended in order
	Failed    uint64        // calls and streams that ended with an error
	Errors    CodeCounts    // Failed by code
	Stream    bool
	OnLoop    bool // at a server: its handler runs on the loop
	// Late is the part of Failed whose callers had given up before the request was sent, or
	// handled.
	Late uint64
	// WaitedOut is the part of a server's Failed that has waited for a place, or for the parts of
	// the request, and was then refused for lack of one (ServerConfig.MaxWait).
	WaitedOut uint64
	// Repeated is the number of a client's attempts after the first (Retry).
	Repeated uint64
	// Undecoded is the part of a client's OK whose answers could not be decoded. It does not count
	// items.
	Undecoded uint64
	Refused   RefusedCalls
	Items     uint64 // items of streams
	// SentBytes counts requests with their metadata, answers and items, without headers, when they
	// are queued. It includes a client's requests that were dropped later (Late).
	SentBytes     uint64
	ReceivedBytes uint64
	// Latency is the time from a request's arrival to its answer; at a client, from queueing the
	// request until the caller has its answer or gives up. A stream takes as long as it lasts. A
	// connection times the first 64 calls of a method, and then one of 16, which counts as 16.
	Latency Histogram
}

// RefusedCalls are calls that never began, by reason. They are in no other figure.
type RefusedCalls struct {
	Limit      uint64 // the limit of calls in flight was reached
	Memory     uint64 // no memory for the request
	Draining   uint64 // the server drains
	Connection uint64 // no connection, or the client was closed
	Method     uint64 // unknown at the server, or without a number on the connection
	Message    uint64 // the request was too large, or its metadata was invalid
	Context    uint64 // the caller's context had ended
}

// CodeCount is how many calls have failed with a code.
type CodeCount struct {
	Code  Code
	Calls uint64
}

// CodeCounts are ordered by code. A code that is not registered in this program (RegisterCode) is
// counted as CodeUnknown.
type CodeCounts []CodeCount

func (c CodeCounts) String() string {
	texts := make([]string, len(c))
	for i, n := range c {
		texts[i] = fmt.Sprintf("%v %d", n.Code, n.Calls)
	}
	return strings.Join(texts, ", ")
}

// Inspect reports on the methods that have handlers, ordered by name, and at the end on the calls
// of unknown methods. It waits for no loop. Any goroutine. inspect.Rows shows it.
func (s *Server) Inspect() []MethodInfo {
	return s.sumMethods().methodInfos(func(i *MethodInfo, sum *methodSum) {
		i.InFlight += sum.running
		if !i.OnLoop { // taken was read first, so it does not exceed the calls that started
			i.Waiting = min(int(sum.begun-sum.taken), i.InFlight)
		}
	})
}

// sumMethods returns the sums of all connections' counts until now.
func (s *Server) sumMethods() *methodSums {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	sums := s.ledger.beginLocked()
	defer s.ledger.settleLocked(sums)
	s.workers.mu.Lock()
	for _, sum := range sums.all {
		sum.taken = sum.counts.taken
	}
	s.workers.mu.Unlock()
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.out.mu.Lock()
		for i, t := range c.tallies {
			if t != nil {
				sums.sumAt(i).add(t)
			}
		}
		if c.onLoop != nil {
			sums.sumAt(c.onLoop.index).running++
		}
		c.summed = s.ledger.reading
		c.out.mu.Unlock()
	}
	return sums
}

// Inspect reports on the methods that were called, ordered by name. It waits for no loop. Any
// goroutine. inspect.Rows shows it. A call whose caller has given up is not in flight here, but
// Client.InFlight counts it.
func (c *Client) Inspect() []MethodInfo {
	return c.sumMethods().methodInfos(func(i *MethodInfo, sum *methodSum) {
		i.Waiting = sum.running + int(sum.counts.unconnected.Load())
	})
}

// sumMethods returns the sums of all connections' counts until now.
func (c *Client) sumMethods() *methodSums {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.mu.Lock()
	links := slices.Collect(maps.Keys(c.links))
	c.mu.Unlock()
	sums := c.ledger.beginLocked()
	defer c.ledger.settleLocked(sums)
	for _, l := range links {
		l.out.mu.Lock()
		for i := range l.methods {
			sums.sumAt(l.methods[i].counts.index).add(&l.methods[i].tally)
		}
		l.unsentLocked(func(m *methodCounts) { sums.sumAt(m.index).running++ })
		l.summed = c.ledger.reading
		l.out.mu.Unlock()
	}
	return sums
}

// methodSum has the sums of all connections' counts for a method.
type methodSum struct {
	tally
	counts  *methodCounts
	taken   uint64
	running int // being handled on a loop; at a client: not sent yet
}

// methodSums are those of all methods, the unknown one last.
type methodSums struct{ all []*methodSum }

// beginLocked begins a reading with the connections that are gone. settleLocked is its end.
func (l *ledger) beginLocked() *methodSums {
	l.reading++
	s := &methodSums{}
	for _, m := range l.allMethods() {
		s.all = append(s.all, &methodSum{tally: m.past, counts: m})
	}
	s.all = append(s.all, &methodSum{tally: l.unknown.past, counts: &l.unknown})
	return s
}

// sumAt returns the sum of the method with an index.
func (s *methodSums) sumAt(index int) *methodSum {
	switch last := len(s.all) - 1; {
	case index < last:
		return s.all[index]
	case index == wire.MaxMethods:
		return s.all[last]
	}
	return &methodSum{} // newer than the list: the next reading includes it
}

// methodInfos returns the result of Inspect. more adds values that are not in the tallies. The
// caller has not locked ledger.mu: other readings wait for it.
func (s *methodSums) methodInfos(more func(*MethodInfo, *methodSum)) []MethodInfo {
	infos, now := make([]MethodInfo, 0, len(s.all)), time.Now()
	for i, sum := range s.all {
		info := sum.methodInfo()
		more(&info, sum)
		info.Started = info.OK + info.Failed + uint64(info.InFlight)
		info.PerSecond = sum.counts.perSecond(now, info.Started)
		if i < len(s.all)-1 || info.Failed+info.OK+info.Refused.totalCalls() > 0 || info.InFlight > 0 {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b MethodInfo) int {
		return cmp.Or(compareBool(a.Method == unknownMethod, b.Method == unknownMethod), strings.Compare(a.Method, b.Method))
	})
	return infos
}

// compareBool orders false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (s *methodSum) methodInfo() MethodInfo {
	m := s.counts
	i := MethodInfo{
		Method: m.name, Stream: m.stream, OnLoop: m.loop, InFlight: int(s.begun - s.ok - s.failed), OK: s.ok, Failed: s.failed,
		Late: m.late.Load(), WaitedOut: m.waitedOut.Load(), Repeated: m.repeated.Load(), Undecoded: m.undecoded.Load(),
		Items: s.items, SentBytes: s.sent, ReceivedBytes: s.received, Latency: m.latency.readCounts(), Errors: m.errorCounts(),
		Refused: RefusedCalls{
			Limit: m.refused[forLimit].Load(), Memory: m.refused[forMemory].Load(), Draining: m.refused[forDraining].Load(),
			Connection: m.refused[forConnection].Load(), Method: m.refused[forMethod].Load(),
			Message: m.refused[forMessage].Load(), Context: m.refused[forContext].Load(),
		},
	}
	i.P50, i.P99 = i.Latency.Quantile(0.5), i.Latency.Quantile(0.99)
	return i
}

// errorCounts returns how many calls have failed with which code.
func (m *methodCounts) errorCounts() CodeCounts {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all CodeCounts
	for code, n := range m.failures {
		all = append(all, CodeCount{code, n})
	}
	slices.SortFunc(all, func(a, b CodeCount) int { return cmp.Compare(a.Code, b.Code) })
	return all
}

func (r *RefusedCalls) totalCalls() uint64 {
	return r.Limit + r.Memory + r.Draining + r.Connection + r.Method + r.Message + r.Context
}
