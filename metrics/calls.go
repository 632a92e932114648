package metrics

import (
	"maps"
	"slices"

	"github.com/rdmactor/rdmactor/rpc"
)

// perSide is the number of calls under way.
var perSide = func() (g group[int]) {
	g.addMetric(Definition{"rpc", "in_flight", Gauge, None, []string{"side"}, "Calls that are under way."}, func(n int) float64 { return float64(n) })
	return g
}()

type callsOf = *rpc.MethodInfo

// perMethod are the calls of a method; a client counts each attempt.
var perMethod = func() (g group[callsOf]) {
	add := func(kind Kind, name, help string, value func(callsOf) float64) {
		g.addMetric(Definition{"rpc", name, kind, None, []string{"side", "method"}, help}, value)
	}
	add(Counter, "started_calls", "Calls that have begun.", func(m callsOf) float64 { return float64(m.Started) })
	add(Gauge, "running_calls", "Calls that have begun and have not ended.", func(m callsOf) float64 { return float64(m.InFlight) })
	add(Gauge, "waiting_calls", "Calls that wait for a place, a worker or the request, at a client for a connection or to be sent.", func(m callsOf) float64 { return float64(m.Waiting) })
	add(Counter, "waited_out_calls", "Of the ended calls, those that a server has refused because they had waited for a place for too long.", func(m callsOf) float64 { return float64(m.WaitedOut) })
	return g
}()

// perCode is the number of calls that ended with one code.
var perCode = func() (g group[uint64]) {
	g.addMetric(Definition{"rpc", "ended_calls", Counter, None, []string{"side", "method", "code"}, "Calls that have ended, by code: OK, or that of the error."}, func(n uint64) float64 { return float64(n) })
	return g
}()

// perReason is the number of calls refused for one reason.
var perReason = func() (g group[uint64]) {
	g.addMetric(Definition{"rpc", "refused_calls", Counter, None, []string{"side", "method", "reason"}, "Calls that never began, by reason."}, func(n uint64) float64 { return float64(n) })
	return g
}()

// latency is the distribution of the durations of a method's calls.
var latency = defineMetric(Definition{"rpc", "latency", Histogram, Seconds, []string{"side", "method"}, "How long calls have taken, streams included: some are timed, and count for all."})

// caller is an *rpc.Server or an *rpc.Client. Its methods run no code of the program's.
type caller interface {
	comparable
	InFlight() int
	Inspect() []rpc.MethodInfo
}

// side reads the servers, or the clients. Only one reading at a time.
type side[C caller] struct {
	name    string
	list    func() []C // the program's; nil: the side is left out
	methods *names     // shared by both sides

	seen    []C                        // present ones
	gone    map[string]*rpc.MethodInfo // counts of those that have gone, by label
	started map[string]uint64          // by label
}

func newSide[C caller](name string, list func() []C, methods *names) *side[C] {
	return &side[C]{name: name, list: list, methods: methods, gone: make(map[string]*rpc.MethodInfo), started: make(map[string]uint64)}
}

// readCalls sums all calls by method. It reads a caller that is no longer in the list until its
// last call has ended.
func (s *side[C]) readCalls(all []Sample) []Sample {
	if s.list == nil {
		return all
	}
	listed := make(map[C]bool, len(s.seen))
	for _, c := range s.seen {
		listed[c] = false
	}
	var none C
	for _, c := range s.list() {
		if _, known := listed[c]; !known && c != none {
			s.seen = append(s.seen, c)
		}
		listed[c] = true
	}
	inFlight, sums := 0, make(map[string]*rpc.MethodInfo)
	s.seen = slices.DeleteFunc(s.seen, func(c C) bool {
		n, infos := c.InFlight(), c.Inspect()
		inFlight += n
		s.labelMethods(infos)
		if n > 0 || listed[c] || hasActiveCalls(infos) {
			addSums(sums, infos)
			return false
		}
		addSums(s.gone, infos)
		return true
	})
	for label, m := range s.gone {
		addTo(sums, label, m)
	}
	all = perSide.appendSamples(all, inFlight, s.name)
	return s.appendSamples(all, sums)
}

// labelMethods replaces the methods in infos by their labels.
func (s *side[C]) labelMethods(infos []rpc.MethodInfo) {
	name := func(i int) string { return infos[i].Method }
	s.methods.assignLabels(len(infos), name, name)
	for i := range infos {
		infos[i].Method = s.methods.given[infos[i].Method]
	}
}

func (s *side[C]) appendSamples(all []Sample, sums map[string]*rpc.MethodInfo) []Sample {
	for _, label := range slices.Sorted(maps.Keys(sums)) {
		m := sums[label]
		// a request to a handler on a loop is briefly in flight even if it is then refused
		m.Started = max(m.Started, s.started[label])
		s.started[label] = m.Started
		all = perMethod.appendSamples(all, m, s.name, label)
		all = perCode.appendSamples(all, m.OK, s.name, label, rpc.Code(0).String())
		for _, e := range m.Errors {
			all = perCode.appendSamples(all, e.Calls, s.name, label, e.Code.String())
		}
		for reason, n := range refusedByReason(&m.Refused) {
			all = perReason.appendSamples(all, n, s.name, label, reason)
		}
		all = append(all, Sample{Definition: latency, Values: []string{s.name, label}, Histogram: &m.Latency})
	}
	return all
}

// refusedByReason returns the number of refused calls, by reason.
func refusedByReason(r *rpc.RefusedCalls) map[string]uint64 {
	return map[string]uint64{
		"limit": r.Limit, "memory": r.Memory, "draining": r.Draining, "connection": r.Connection,
		"method": r.Method, "message": r.Message, "context": r.Context,
	}
}

// hasActiveCalls reports whether a call has not ended.
func hasActiveCalls(infos []rpc.MethodInfo) bool {
	return slices.ContainsFunc(infos, func(i rpc.MethodInfo) bool { return i.InFlight+i.Waiting > 0 })
}

// addSums adds infos to the sums, by label.
func addSums(sums map[string]*rpc.MethodInfo, infos []rpc.MethodInfo) {
	for i := range infos {
		addTo(sums, infos[i].Method, &infos[i])
	}
}

// addTo adds m to the sum with a label.
func addTo(sums map[string]*rpc.MethodInfo, label string, m *rpc.MethodInfo) {
	to := sums[label]
	if to == nil {
		to = new(rpc.MethodInfo)
		sums[label] = to
	}
	to.Started += m.Started
	to.InFlight += m.InFlight
	to.Waiting += m.Waiting
	to.WaitedOut += m.WaitedOut
	to.OK += m.OK
	r, o := &to.Refused, &m.Refused
	r.Limit += o.Limit
	r.Memory += o.Memory
	r.Draining += o.Draining
	r.Connection += o.Connection
	r.Method += o.Method
	r.Message += o.Message
	r.Context += o.Context
	to.Latency.Add(&m.Latency)
	for _, e := range m.Errors {
		at := slices.IndexFunc(to.Errors, func(t rpc.CodeCount) bool { return t.Code == e.Code })
		if at < 0 {
			to.Errors = append(to.Errors, e)
		} else {
			to.Errors[at].Calls += e.Calls
		}
	}
}
