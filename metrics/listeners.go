package metrics

import (
	"cmp"
	"slices"
	"strconv"

	rdma "github.com/rdmactor/rdmactor/actor"
)

type listenerOf = *rdma.ListenerInfo

// perListener are the metrics of the listeners at one address.
var perListener = func() (g group[listenerOf]) {
	requests := func(name, help string, value func(listenerOf) uint64) {
		g.addMetric(Definition{"listener", name, Counter, None, []string{"address"}, help}, func(l listenerOf) float64 { return float64(value(l)) })
	}
	requests("requests", "Connection requests.", func(l listenerOf) uint64 { return l.Requests })
	requests("accepted", "Requests that were accepted.", func(l listenerOf) uint64 { return l.Accepted })
	requests("rejected", "Requests that the program has rejected.", func(l listenerOf) uint64 { return l.Rejected })
	requests("timed_out", "Requests that no owner answered in time.", func(l listenerOf) uint64 { return l.TimedOut })
	requests("dropped", "Requests that ended before they were answered.", func(l listenerOf) uint64 { return l.Dropped })
	requests("strangers", "Connections without a request in the device's protocol.", func(l listenerOf) uint64 { return l.Strangers })
	requests("starved", "Pauses because there were no file descriptors, or no memory, to accept a connection.", func(l listenerOf) uint64 { return l.Starved })
	g.addMetric(Definition{"listener", "pending", Gauge, None, []string{"address"}, "Requests that are not answered yet."}, func(l listenerOf) float64 { return float64(l.Pending) })
	return g
}()

// perRefusal is the number of requests that the runtime has refused for one reason.
var perRefusal = func() (g group[uint64]) {
	g.addMetric(Definition{"listener", "refused", Counter, None, []string{"address", "reason"}, "Requests that the runtime has refused, by reason."}, func(n uint64) float64 { return float64(n) })
	return g
}()

// listenerSamples adds the listeners. Those beyond Config.Listeners are summed as "other", with
// ended ones.
func (s *Source) listenerSamples(all []Sample, loops []rdma.LoopInfo) []Sample {
	var ended rdma.ListenerInfo
	var listeners []rdma.ListenerTotals
	for i := range loops {
		ended.Add(loops[i].EndedListeners)
		listeners = append(listeners, loops[i].Listeners...)
	}
	slices.SortFunc(listeners, func(a, b rdma.ListenerTotals) int { return cmp.Compare(a.ID, b.ID) })
	key := func(i int) string { return strconv.FormatUint(uint64(listeners[i].ID), 10) }
	s.listeners.assignLabels(len(listeners), key, func(i int) string { return listeners[i].Local.String() })
	addresses := []string{s.listeners.rest}
	at := map[string]*rdma.ListenerInfo{s.listeners.rest: &ended}
	for i := range listeners {
		address := s.listeners.given[key(i)]
		if at[address] == nil {
			at[address] = new(rdma.ListenerInfo)
			addresses = append(addresses, address)
		}
		at[address].Add(listeners[i].ListenerInfo)
	}
	for _, address := range addresses {
		l := at[address]
		all = perListener.appendSamples(all, l, address)
		r := &l.Refused
		for _, refused := range []struct {
			reason string
			n      uint64
		}{
			{"limits", r.Limits},
			{"memory", r.Memory},
			{"foreign", r.Foreign},
			{"closing", r.Closing},
			{"failed", r.Failed},
			{"rate", r.Rate},
			{"identity", r.Identity},
			{"unauthenticated", r.Unauthenticated},
		} {
			all = perRefusal.appendSamples(all, refused.n, address, refused.reason)
		}
	}
	return all
}
