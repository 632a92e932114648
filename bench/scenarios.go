package main

import (
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

func blockingEntries(names ...string) (list []entry) {
	for _, n := range names {
		list = append(list, entry{contestant: n})
	}
	return list
}

func busyEntries(names ...string) (list []entry) {
	for _, n := range names {
		list = append(list, entry{n, eventloop.Busy})
	}
	return list
}

// onceOnly is what a run allocates once, for each of its calls.
const onceOnly = 0.05

// The names of the metrics that only some scenarios have.
const (
	connections      = "connections"
	serverKiB        = "server KiB/conn"
	clientKiB        = "client KiB/conn"
	serverGoroutines = "server goroutines"
	clientGoroutines = "client goroutines"
)

var scenarios = []scenario{
	{
		name: "echo", title: "Unary echo, 64 B, 1 caller, blocking",
		note: "verbs, actor, net.Conn and netpoll have no calls: one message there, one back. rdmactor at the verbs and actor levels " +
			"answers inside the loop, without a goroutine.",
		on:      sameCPU,
		entries: blockingEntries("verbs", "actor", "rpc-onloop", "rpc", "rdmanet", "net.Conn", "netpoll", "net/rpc", "grpc-go", "proto.actor"),
		columns: []string{p50, p90, p99, perSecond, cpuPer, allocsPer},
		base:    "grpc-go",
		bars: []bar{
			{
				what:   "call, 1 caller, blocking, handler on the loop, against grpc-go: p50",
				metric: p50, entry: "rpc-onloop", base: "grpc-go", most: 0.45,
			},
			{
				what:   "call, 1 caller, blocking, handler on a goroutine, against grpc-go: p50",
				metric: p50, entry: "rpc", base: "grpc-go", most: 0.45,
			},
			{
				what:   "allocations per call, client and server, 1 caller, handler on the loop",
				metric: allocsPer, entry: "rpc-onloop", most: 2, slack: onceOnly,
			},
			{what: "allocations per call, client and server, 1 caller, handler on a goroutine", metric: allocsPer, entry: "rpc", most: 2, slack: onceOnly},
		},
		serve: serveEcho, dial: dialTrips,
	},
	{
		name: "busy", title: "Unary echo, 64 B, 1 caller, busy polling",
		note:    "rdmactor polls on both sides; the others cannot, and block on the same CPUs.",
		on:      ownCPU,
		entries: append(busyEntries("verbs", "actor", "rpc-onloop", "rpc", "rdmanet"), blockingEntries("net.Conn", "netpoll", "grpc-go")...),
		columns: []string{p50, p90, p99, perSecond},
		base:    "grpc-go",
		bars: []bar{
			{
				what:   "call, 1 caller, busy polling, handler on the loop, against grpc-go: p50",
				metric: p50, entry: "rpc-onloop busy", base: "grpc-go", most: 0.25,
			},
			{
				what:   "call, 1 caller, busy polling, handler on a goroutine, against grpc-go: p50",
				metric: p50, entry: "rpc busy", base: "grpc-go", most: 0.25,
			},
		},
		serve: serveEcho, dial: dialTrips,
	},
	{
		name: "calls", title: "Calls, 64 B, 64 goroutines on one connection, blocking",
		on:      sameCPU,
		entries: blockingEntries("rpc-onloop", "rpc", "net/rpc", "grpc-go", "proto.actor"),
		columns: []string{perSecond, cpuPer, allocsPer, p50, p99},
		base:    "grpc-go",
		bars: []bar{
			{
				what:   "calls/s, 64 callers, handler on the loop, against grpc-go",
				metric: perSecond, entry: "rpc-onloop", base: "grpc-go", least: 6,
			},
			{
				what:   "calls/s, 64 callers, handler on a goroutine, against grpc-go",
				metric: perSecond, entry: "rpc", base: "grpc-go", least: 6,
			},
			{
				what:   "CPU per call, 64 callers, handler on the loop, against grpc-go",
				metric: cpuPer, entry: "rpc-onloop", base: "grpc-go", most: 0.2,
			},
			{
				what:   "CPU per call, 64 callers, handler on a goroutine, against grpc-go",
				metric: cpuPer, entry: "rpc", base: "grpc-go", most: 0.2,
			},
			{
				what:   "allocations per call, client and server, 64 callers, handler on the loop",
				metric: allocsPer, entry: "rpc-onloop", most: 2, slack: onceOnly,
			},
			{
				what:   "allocations per call, client and server, 64 callers, handler on a goroutine",
				metric: allocsPer, entry: "rpc", most: 2, slack: onceOnly,
			},
		},
		serve: serveEcho, dial: dialCalls,
	},
	{
		name: "oneway", title: "Messages of 64 B, one way, blocking",
		note: "4,096 on their way, each 1,024 answered; one write for each message of net.Conn.",
		on:   ownCPU, entries: blockingEntries("verbs", "actor", "net.Conn"),
		columns: []string{perSecond, mibPerS, cpuPer, allocsPer},
		base:    "verbs",
		bars: []bar{{
			what:   "actor level's message rate against the verbs level, 64 B",
			metric: perSecond, entry: "actor", base: "verbs", least: 0.6,
		}},
		serve: smallFlow.serve, dial: smallFlow.dial,
	},
	{
		name: "pages", title: "Messages of 4 KiB, one way, blocking",
		note: "1,024 on their way, each 256 answered. verbs sends the same 4 KiB again and again, out of the first cache; verbs-own has as many of " +
			"them as are on their way, which is what actors have.",
		on: ownCPU, entries: blockingEntries("verbs", ownMemory, "actor", "net.Conn"),
		columns: []string{perSecond, mibPerS, cpuPer, allocsPer},
		base:    "verbs",
		bars: []bar{{
			what:   "actor level's message rate against the verbs level, 4 KiB",
			metric: perSecond, entry: "actor", base: "verbs", least: 0.9,
		}, {
			what:   "the same against the verbs level with memory of its own for each message, 4 KiB",
			metric: perSecond, entry: "actor", base: ownMemory, least: 0.9,
		}},
		serve: pageFlow.serve, dial: pageFlow.dial,
	},
	{
		name: "bulk", title: "Messages of 1 MiB, one way, blocking, CRC off",
		note: "16 on their way, each 4 answered; net.Conn writes the same 1 MiB again and again, and reads what there is.",
		on:   ownCPU, entries: blockingEntries("verbs", "actor", "net.Conn"),
		columns: []string{mibPerS, perSecond, cpuPer, allocsPer},
		base:    "net.Conn",
		bars: []bar{{
			what:   "1 MiB messages at actor level against net.Conn",
			metric: mibPerS, entry: "actor", base: "net.Conn", least: 0.9,
		}},
		serve: largeFlow.serve, dial: largeFlow.dial,
	},
	{
		name: "http", title: "net/http, GET of 64 B, 64 connections and goroutines",
		note: "The same client and server, over rdmanet's net.Conn and over TCP's.",
		on:   sameCPU, entries: blockingEntries("rdmanet", "net.Conn"),
		columns: []string{perSecond, cpuPer, allocsPer, p50, p99},
		base:    "net.Conn",
		bars: []bar{{
			what:   "net/http over rdmanet against TCP, 64 connections: requests/s",
			metric: perSecond, entry: "rdmanet", base: "net.Conn", least: 0.95,
		}},
		serve: serveHTTP, dial: dialHTTP,
	},
	{
		name: "overload", title: "Overload: a call costs 50 us, 16 may be in flight",
		note: "Four connections of 8 calls at most. Sustainable is what 8 callers get; then calls come at 0.9 and at 2 times that rate, " +
			"whatever became of those before. Times are of the calls that were answered, from the call on.",
		on: ownCPU, entries: blockingEntries("rpc"),
		columns: []string{sustainable, belowP99, aboveP99, goodput, refusedBelow, refusedShare, answerP50, refusalP50, refusalP99},
		bars: []bar{
			{
				what:   "overload: accepted p99 at 2x the sustainable load against 0.9x",
				metric: aboveP99, ofItself: belowP99, entry: "rpc", most: 2,
			},
			{what: "overload: a refusal against an answer, p50", metric: refusalP50, ofItself: answerP50, entry: "rpc", most: 1},
			{what: "overload: a refusal against an answer, p99", metric: refusalP99, ofItself: aboveP99, entry: "rpc", most: 1},
		},
		serve: serveOverload, dial: dialOverload,
	},
	{
		name: "many", title: "20,000 connections, a quarter of them with 1 message of 64 B each second",
		note: "As many of them as the limit of open files allows. Memory is all that the process has resident, divided by the connections; " +
			"the kernel's socket buffers are not in it. net.Conn has a goroutine for each connection at the server, and at the client for " +
			"each that talks.",
		on: anyCPU, entries: blockingEntries("net.Conn", "actor"), // actors leave their ports in TIME_WAIT
		columns: []string{connections, serverKiB, clientKiB, serverGoroutines, clientGoroutines, perSecond, cpuPer, p50, p99},
		bars: []bar{
			{what: "many connections: goroutines of the server, actor level", metric: serverGoroutines, entry: "actor", most: 50},
			{what: "many connections: goroutines of the client, actor level", metric: clientGoroutines, entry: "actor", most: 50},
		},
		once: true, atLeast: 10 * time.Second,
		serve: serveMany, dial: dialMany,
	},
}
