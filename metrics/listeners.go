package metrics

import (
	"slices"

	rdma "github.com/rdmactor/rdmactor/actor"
)

type listenerOf = *rdma.ListenerInfo

// perListener are the metrics of the listeners at one address.
var perListener = func() (g group[listenerOf]) {
	requests := func(name, help string, value func(listenerOf) uint64) {
		g.add(Definition{"listener", name, Counter, None, []string{"address"}, help}, func(l listenerOf) float64 { return float64(value(l)) })
	}
	requests("requests", "Connection requests that have come.", func(l listenerOf) uint64 { return l.Requests })
	requests("accepted", "Requests that were accepted.", func(l listenerOf) uint64 { return l.Accepted })
	requests("rejected", "Requests that the program has rejected.", func(l listenerOf) uint64 { return l.Rejected })
	requests("timed_out", "Requests that nobody has answered.", func(l listenerOf) uint64 { return l.TimedOut })
	requests("dropped", "Requests that ended before they were answered.", func(l listenerOf) uint64 { return l.Dropped })
	requests("strangers", "Connections without a request in the device's protocol.", func(l listenerOf) uint64 { return l.Strangers })
	g.add(Definition{"listener", "pending", Gauge, None, []string{"address"}, "Requests that are not answered yet."}, func(l listenerOf) float64 { return float64(l.Pending) })
	return g
}()

// perRefusal is how many requests the runtime has refused for one reason.
var perRefusal = func() (g group[uint64]) {
	g.add(Definition{"listener", "refused", Counter, None, []string{"address", "reason"}, "Requests that the runtime has refused, by reason."}, func(n uint64) float64 { return float64(n) })
	return g
}()

// listenerSamples adds the listeners. Those beyond Config.Listeners are summed as "other".
func (s *Source) listenerSamples(all []Sample, loops []rdma.LoopInfo) []Sample {
	at := make(map[string]*rdma.ListenerInfo)
	var addresses []string
	for i := range loops {
		for j := range loops[i].Listeners {
			l := &loops[i].Listeners[j]
			address := label(l.Local.String())
			if at[address] == nil {
				if len(addresses) >= s.cfg.Listeners {
					address = labelOther
				}
				if at[address] == nil {
					at[address] = new(rdma.ListenerInfo)
					addresses = append(addresses, address)
				}
			}
			addListener(at[address], &l.ListenerInfo)
		}
	}
	slices.Sort(addresses)
	for _, address := range addresses {
		l := at[address]
		all = perListener.samples(all, l, address)
		r := &l.Refused
		for _, refused := range []struct {
			reason string
			n      uint64
		}{{"limits", r.Limits}, {"memory", r.Memory}, {"foreign", r.Foreign}, {"closing", r.Closing}, {"failed", r.Failed}} {
			all = perRefusal.samples(all, refused.n, address, refused.reason)
		}
	}
	return all
}

func addListener(sum, l *rdma.ListenerInfo) {
	sum.Requests += l.Requests
	sum.Accepted += l.Accepted
	sum.Rejected += l.Rejected
	sum.TimedOut += l.TimedOut
	sum.Dropped += l.Dropped
	sum.Pending += l.Pending
	sum.Strangers += l.Strangers
	sum.Refused.Limits += l.Refused.Limits
	sum.Refused.Memory += l.Refused.Memory
	sum.Refused.Foreign += l.Refused.Foreign
	sum.Refused.Closing += l.Refused.Closing
	sum.Refused.Failed += l.Refused.Failed
}
