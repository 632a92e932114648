package rpc

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Counters that every call changes are in a tally of its connection, which out.mu guards: the call
// locks it anyway, so counting costs a few plain additions. Rare events are in the counts of its
// method.

// tally has a connection's counters for the calls of a method. out.mu guards it.
type tally struct {
	begun, ok, failed     uint64
	items, sent, received uint64 // stream items in both directions; bytes
}

func (t *tally) add(o *tally) {
	t.begun += o.begun
	t.ok += o.ok
	t.failed += o.failed
	t.items += o.items
	t.sent += o.sent
	t.received += o.received
}

// countEnd counts the end of a call. code 0: it was answered.
func (t *tally) countEnd(code Code) {
	if code == 0 {
		t.ok++
	} else {
		t.failed++
	}
}

// A connection's first calls of a method are timed, and then one of sixteen: a look at the clock
// costs more than all counters together.
const (
	alwaysTimed = 64
	timedEvery  = 16
)

// timedWeight returns the number of calls that the nth one represents in the latency. 0: it is not
// timed. Timed calls are not equally spaced, so that they do not fall into step with a pattern of
// calls.
func timedWeight(n uint64) (weight uint64) {
	switch {
	case n <= alwaysTimed:
		return 1
	case uint32(n)*0x9E3779B1 < 1<<32/timedEvery:
		return timedEvery
	}
	return 0
}

// stopwatch times a call, if it is one that is timed.
type stopwatch struct {
	weight uint64
	began  time.Time
}

// stop counts how long the call has taken, and returns it; 0: it was not timed.
func (w *stopwatch) stop(to *methodCounts) (took time.Duration) {
	if w.began.IsZero() {
		return 0
	}
	took = time.Since(w.began)
	if w.weight > 0 {
		to.latency.add(took, w.weight)
	}
	return took
}

// reason is why a call was refused before it began.
type reason uint8

const (
	forLimit reason = iota
	forMemory
	forDraining
	forConnection
	forMethod
	forMessage
	forContext
	reasons
)

// reasonOf returns the reason for which a call was refused with a code.
func reasonOf(code Code) reason {
	switch code {
	case CodeOverloaded:
		return forLimit
	case CodeDraining:
		return forDraining
	case CodeUnknownMethod:
		return forMethod
	case CodeCanceled, CodeDeadline:
		return forContext
	case CodeTooLarge, CodeBadMessage:
		return forMessage
	}
	return forConnection
}

// methodCounts has the counters of a Server or a Client for the calls of a method. Any goroutine
// may use it.
type methodCounts struct {
	name         string
	latency      histogram
	refused      [reasons]atomic.Uint64
	late         atomic.Uint64
	waitedOut    atomic.Uint64
	repeated     atomic.Uint64
	undecoded    atomic.Uint64
	unconnected  atomic.Int64 // client calls that wait for a connection
	mu           sync.Mutex   // guards failures and pace
	failures     map[Code]uint64
	pace         pace
	past         tally  // sum over former connections; ledger.mu
	taken        uint64 // calls that wait for no worker any longer; workers.mu
	index        int    // in the tallies of a server's connections
	stream, loop bool
}

// pace is how many calls begin in a second.
type pace struct {
	since     time.Time // time of the last calculation
	begun     uint64    // calls started by then
	perSecond float64
}

// paceEvery is how long calls are counted for a pace, at least.
const paceEvery = time.Second

// rateAt returns the pace after begun calls.
func (p *pace) rateAt(now time.Time, begun uint64) float64 {
	if d := now.Sub(p.since); d >= paceEvery {
		p.perSecond = float64(begun-min(begun, p.begun)) / d.Seconds()
		p.since, p.begun = now, begun
	}
	return p.perSecond
}

// perSecond returns the number of calls started per second, after begun calls.
func (m *methodCounts) perSecond(now time.Time, begun uint64) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pace.rateAt(now, begun)
}

// countFailure counts an error. Codes that are not registered in this program count as CodeUnknown:
// a peer may send any.
func (m *methodCounts) countFailure(code Code) {
	if code == 0 {
		return
	}
	if sentinelOf(code) == nil {
		code = CodeUnknown
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures == nil {
		m.failures = make(map[Code]uint64)
	}
	m.failures[code]++
}

// kept has the counts of an ended connection for a method, until methodCounts.past includes them.
type kept struct {
	of *methodCounts
	tally
	summed uint64 // the last reading that included the tally at its connection
}

// keepTally keeps a tally whose connection has ended. settleKept follows.
func (l *ledger) keepTally(of *methodCounts, t *tally, summed uint64) {
	if *t == (tally{}) {
		return
	}
	l.keeping.Lock()
	defer l.keeping.Unlock()
	l.kept = append(l.kept, kept{of, *t, summed})
}

// settleKept adds kept tallies to methodCounts.past. If another goroutine is summing tallies, it
// does so at its end.
func (l *ledger) settleKept() {
	if l.mu.TryLock() {
		defer l.mu.Unlock()
		l.settleLocked(nil)
	}
}

// settleLocked is settleKept with ledger.mu locked. It adds the tallies that this reading has not
// counted yet to sums. nil: this is not a reading.
func (l *ledger) settleLocked(sums *methodSums) {
	l.keeping.Lock()
	all := l.kept
	l.kept = nil
	l.keeping.Unlock()
	for i := range all {
		k := &all[i]
		k.of.past.add(&k.tally)
		if sums != nil && k.summed != l.reading {
			sums.sumAt(k.of.index).add(&k.tally)
		}
	}
}

// signature identifies methods that are the same to the peer: a program may have declared one more
// than once.
type signature struct {
	name   string
	stream bool
}

// ledger is the counters of a Server or a Client.
type ledger struct {
	// mu is locked while tallies are summed, and before any out.mu. That may take long, so nothing
	// but another reading waits for it.
	mu      sync.Mutex
	reading uint64 // number of the current reading, from 1

	keeping sync.Mutex // guards kept; locked last
	kept    []kept

	names   sync.Mutex // guards all; locked last
	all     []*methodCounts
	of      map[signature]*methodCounts
	unknown methodCounts // calls of unknown methods
}

// unknownMethod is the name of the entry for calls of methods that are not known here.
const unknownMethod = "unknown"

// newLedger makes the counters of a Server or a Client.
func newLedger() *ledger {
	l := &ledger{of: make(map[signature]*methodCounts)}
	l.unknown.name, l.unknown.index, l.unknown.pace.since = unknownMethod, wire.MaxMethods, time.Now()
	return l
}

// countsOf returns the counts of a method. Those beyond the number that a connection has numbers
// for share one entry.
func (l *ledger) countsOf(m *method) *methodCounts { return l.addMethod(m, false) }

// addMethod returns the counts of a method, and records whether its handler is called on a loop.
func (l *ledger) addMethod(m *method, onLoop bool) *methodCounts {
	l.names.Lock()
	defer l.names.Unlock()
	as := signature{m.name, m.stream}
	c := l.of[as]
	switch {
	case c != nil:
	case len(l.all) >= wire.MaxMethods:
		return &l.unknown
	default:
		c = &methodCounts{name: m.name, index: len(l.all), stream: m.stream, loop: onLoop, pace: pace{since: time.Now()}}
		l.of[as], l.all = c, append(l.all, c)
	}
	return c
}

// allMethods returns the counts of all methods.
func (l *ledger) allMethods() []*methodCounts {
	l.names.Lock()
	defer l.names.Unlock()
	return l.all[:len(l.all):len(l.all)]
}
