package metrics

import (
	"strconv"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/states"
)

type loopOf = *rdma.LoopInfo

// perLoop are a loop's metrics; the label is its name.
var perLoop = func() (g group[loopOf]) {
	add := func(kind Kind, unit Unit, name, help string, value func(loopOf) float64) {
		g.addMetric(Definition{"loop", name, kind, unit, []string{"loop"}, help}, value)
	}
	add(Gauge, None, "identifiers", "Identifiers on the loop, and requests on their way to it.", func(l loopOf) float64 { return float64(l.Identifiers) })
	add(Counter, None, "turns", "Passes through the loop.", func(l loopOf) float64 { return float64(l.Turns) })
	add(Counter, Seconds, "busy", "Time in turns that had something to do.", func(l loopOf) float64 { return l.Busy.Seconds() })
	add(Gauge, Seconds, "longest_turn", "The longest turn since the loop was made.", func(l loopOf) float64 { return l.LongestTurn.Seconds() })
	add(Gauge, Seconds, "recent_turn", "The longest turn that has ended in the last 10 to 20 s.", func(l loopOf) float64 { return l.RecentTurn.Seconds() })
	add(Gauge, Seconds, "longest_wait", "The longest time between two turns.", func(l loopOf) float64 { return l.LongestWait.Seconds() })
	add(Gauge, Seconds, "turn", "How long the present turn has lasted.", func(l loopOf) float64 { return l.Turn.Seconds() })
	add(Gauge, None, "blocked", "1 if the present turn has lasted more than 100 ms.", func(l loopOf) float64 { return boolValue(l.Blocked != nil) })
	add(Gauge, None, "queued", "Pieces of work that wait in the run queue.", func(l loopOf) float64 { return float64(l.Queued) })
	add(Counter, None, "wakeups", "Times that the loop was woken from outside.", func(l loopOf) float64 { return float64(l.Wakeups) })
	add(Counter, None, "posts", "Functions that were posted to the loop.", func(l loopOf) float64 { return float64(l.Posts) })
	add(Counter, None, "runs", "Pieces of work from the run queue that were run.", func(l loopOf) float64 { return float64(l.Runs) })
	add(Counter, None, "panics", "Callbacks that have panicked.", func(l loopOf) float64 { return float64(l.Panics) })
	add(Gauge, None, "fds", "File descriptors that the loop watches.", func(l loopOf) float64 { return float64(l.FDs) })
	add(Gauge, None, "timers", "Timers that are armed.", func(l loopOf) float64 { return float64(l.Timers) })
	add(Counter, None, "arrived", "Connections from the listeners of other loops.", func(l loopOf) float64 { return float64(l.Arrived) })
	add(Counter, None, "strangers", "Connections that did not speak the device's protocol.", func(l loopOf) float64 { return float64(l.Strangers) })
	return g
}()

// perTraffic is the traffic of a loop's connections.
var perTraffic = func() (g group[loopOf]) {
	add := func(kind Kind, unit Unit, name, help string, value func(loopOf) float64) {
		g.addMetric(Definition{"connection", name, kind, unit, []string{"loop"}, help}, value)
	}
	count := func(name, help string, value func(loopOf) uint64) {
		add(Counter, None, name, help, func(l loopOf) float64 { return float64(value(l)) })
	}
	bytes := func(name, help string, value func(loopOf) uint64) {
		add(Counter, Bytes, name, help, func(l loopOf) float64 { return float64(value(l)) })
	}
	count("sent_messages", "Messages passed to the device.", func(l loopOf) uint64 { return l.Traffic.Sent })
	bytes("sent", "Bytes of messages passed to the device.", func(l loopOf) uint64 { return l.Traffic.SentBytes })
	count("received_messages", "Messages that were delivered.", func(l loopOf) uint64 { return l.Traffic.Received })
	bytes("received", "Bytes of messages that were delivered.", func(l loopOf) uint64 { return l.Traffic.ReceivedBytes })
	count("large_sent_messages", "Of the messages sent, those that the peer reads.", func(l loopOf) uint64 { return l.Traffic.LargeSent })
	count("large_received_messages", "Of the messages received, those that were read.", func(l loopOf) uint64 { return l.Traffic.LargeReceived })
	count("reads", "One-sided reads that have succeeded.", func(l loopOf) uint64 { return l.Traffic.Reads })
	bytes("read", "Bytes of one-sided reads.", func(l loopOf) uint64 { return l.Traffic.ReadBytes })
	count("writes", "One-sided writes that have succeeded.", func(l loopOf) uint64 { return l.Traffic.Writes })
	bytes("written", "Bytes of one-sided writes.", func(l loopOf) uint64 { return l.Traffic.WriteBytes })
	count("atomics", "Atomic operations that have succeeded.", func(l loopOf) uint64 { return l.Traffic.Atomics })
	count("credit_waits", "Times that messages had to wait for credits.", func(l loopOf) uint64 { return l.Traffic.CreditWaits })
	add(Counter, Seconds, "credit_wait", "Time waited for credits, of all connections.", func(l loopOf) float64 { return l.Traffic.CreditWait.Seconds() })
	add(Gauge, None, "waiting", "Connections that wait for credits.", func(l loopOf) float64 { return float64(l.Waiting) })
	add(Gauge, Seconds, "longest_credit_wait", "The longest of the present waits for credits.", func(l loopOf) float64 { return l.Traffic.WaitsFor.Seconds() })
	return g
}()

// perState is the number of identifiers in a state.
var perState = func() (g group[int]) {
	g.addMetric(Definition{"identifiers", "state", Gauge, None, []string{"state"}, "Identifiers by state, of all loops."}, func(n int) float64 { return float64(n) })
	return g
}()

type poolOf = *rdma.PoolInfo

// perPool are the metrics of a loop's memory for one purpose.
var perPool = func() (g group[poolOf]) {
	add := func(unit Unit, name, help string, value func(poolOf) int) {
		g.addMetric(Definition{"pool", name, Gauge, unit, []string{"loop", "pool"}, help}, func(p poolOf) float64 { return float64(value(p)) })
	}
	add(Bytes, "limit", "Bytes that the pool may have (Limits).", func(p poolOf) int { return p.Limit })
	add(Bytes, "registered", "Bytes that are registered with devices.", func(p poolOf) int { return p.Registered })
	add(Bytes, "used", "Of the bytes registered, those in use.", func(p poolOf) int { return p.Used })
	add(None, "waiting", "Connections that wait for memory of the pool.", func(p poolOf) int { return p.Waiting })
	return g
}()

type deviceOf = *rdma.DeviceInfo

// perDevice are the metrics of a loop's use of a device.
var perDevice = func() (g group[deviceOf]) {
	add := func(name, help string, value func(deviceOf) int) {
		g.addMetric(Definition{"device", name, Gauge, None, []string{"loop", "device"}, help}, func(d deviceOf) float64 { return float64(value(d)) })
	}
	add("connections", "Connections with a queue pair.", func(d deviceOf) int { return d.Connections })
	add("queues", "Completion queues.", func(d deviceOf) int { return d.Queues })
	add("retained_messages", "Messages that owners have received and not released.", func(d deviceOf) int { return d.Held })
	return g
}()

// readLoops asks each loop once.
func (s *Source) readLoops() []Sample {
	rt := s.cfg.Runtime
	if rt == nil {
		return nil
	}
	loops := rt.Loops()
	var all []Sample
	var byState [states.NumStates]int
	names := make(map[string]bool, len(loops))
	for i := range loops {
		l := &loops[i]
		name := makeLabel(l.Name)
		if names[name] {
			name += "#" + strconv.Itoa(i)
		}
		names[name] = true
		all = perLoop.appendSamples(all, l, name)
		all = perTraffic.appendSamples(all, l, name)
		all = securitySamples(all, &l.Security, name)
		for j := range l.Memory {
			all = perPool.appendSamples(all, &l.Memory[j], name, makeLabel(l.Memory[j].Name))
		}
		for j := range l.Devices {
			all = perDevice.appendSamples(all, &l.Devices[j], name, makeLabel(l.Devices[j].Name))
		}
		for state, n := range l.States {
			byState[state] += n
		}
	}
	for state, n := range byState {
		all = perState.appendSamples(all, n, states.State(state).String())
	}
	return s.listenerSamples(all, loops)
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
