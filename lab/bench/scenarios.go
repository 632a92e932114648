package main

import (
	"slices"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// onceOnly allows for a run's one-time allocations, divided by the number of its calls.
const onceOnly = 0.05

var (
	smallFlow = contest.Flow{Size: 64, Batch: 1024, Window: 4096}
	pageFlow  = contest.Flow{Size: 4 << 10, Batch: 256, Window: 1024}
	largeFlow = contest.Flow{Size: 1 << 20, Batch: 4, Window: 16}
)

var scenarios = []measure.Scenario{
	{
		Name: "echo", Title: "Unary echo, 64 B, 1 caller, blocking",
		Note: "verbs, actor, net.Conn and netpoll have no calls: one message there, one back. rdmactor at the verbs and actor levels " +
			"answers inside the loop, without a goroutine.",
		On:      measure.SameCPU,
		Entries: contest.Blocking("verbs", "actor", "rpc-onloop", "rpc", "rdmanet", "net.Conn", "netpoll", "net/rpc", "grpc-go", "proto.actor"),
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "grpc-go",
		Bars: []measure.Bar{
			measure.AtMost(0.45, "call, 1 caller, blocking, handler on the loop, against grpc-go: p50", measure.P50, "rpc-onloop", "grpc-go"),
			measure.AtMost(0.45, "call, 1 caller, blocking, handler on a goroutine, against grpc-go: p50", measure.P50, "rpc", "grpc-go"),
			{
				What:   "allocations per call, client and server, 1 caller, handler on the loop",
				Metric: measure.AllocsPer, Entry: "rpc-onloop", Most: 2, Slack: onceOnly,
			},
			{What: "allocations per call, client and server, 1 caller, handler on a goroutine", Metric: measure.AllocsPer, Entry: "rpc", Most: 2, Slack: onceOnly},
		},
		Serve: contestants.Serve, Dial: contestants.Dial,
	},
	{
		Name: "busy", Title: "Unary echo, 64 B, 1 caller, busy polling",
		Note:    "rdmactor polls on both sides; the others cannot, and block on the same CPUs.",
		On:      measure.OwnCPU,
		Entries: slices.Concat(contest.Busy("verbs", "actor", "rpc-onloop", "rpc", "rdmanet"), contest.Blocking("net.Conn", "netpoll", "grpc-go")),
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond},
		Base:    "grpc-go",
		Bars: []measure.Bar{
			measure.AtMost(0.25, "call, 1 caller, busy polling, handler on the loop, against grpc-go: p50", measure.P50, "rpc-onloop busy", "grpc-go"),
			measure.AtMost(0.25, "call, 1 caller, busy polling, handler on a goroutine, against grpc-go: p50", measure.P50, "rpc busy", "grpc-go"),
		},
		Serve: contestants.Serve, Dial: contestants.Dial,
	},
	{
		Name: "calls", Title: "Calls, 64 B, 64 goroutines on one connection, blocking",
		On:      measure.SameCPU,
		Entries: contest.Blocking("rpc-onloop", "rpc", "net/rpc", "grpc-go", "proto.actor"),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.P50, measure.P99},
		Base:    "grpc-go",
		Bars: []measure.Bar{
			measure.AtLeast(6, "calls/s, 64 callers, handler on the loop, against grpc-go", measure.PerSecond, "rpc-onloop", "grpc-go"),
			measure.AtLeast(6, "calls/s, 64 callers, handler on a goroutine, against grpc-go", measure.PerSecond, "rpc", "grpc-go"),
			measure.AtMost(0.2, "CPU per call, 64 callers, handler on the loop, against grpc-go", measure.CPUPer, "rpc-onloop", "grpc-go"),
			measure.AtMost(0.2, "CPU per call, 64 callers, handler on a goroutine, against grpc-go", measure.CPUPer, "rpc", "grpc-go"),
			{
				What:   "allocations per call, client and server, 64 callers, handler on the loop",
				Metric: measure.AllocsPer, Entry: "rpc-onloop", Most: 2, Slack: onceOnly,
			},
			{
				What:   "allocations per call, client and server, 64 callers, handler on a goroutine",
				Metric: measure.AllocsPer, Entry: "rpc", Most: 2, Slack: onceOnly,
			},
		},
		Serve: contestants.Serve, Dial: contestants.DialMany,
	},
	{
		Name: "crowd", Title: "Calls, 64 B, 500 clients with 8 goroutines and a connection each, blocking",
		On:      measure.SameCPU,
		Entries: contest.Blocking("rpc-onloop", "rpc", "grpc-go"),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "grpc-go", Paired: true,
		Bars: []measure.Bar{
			measure.AtLeast(6, "calls/s, 500 clients x 8 callers, handler on the loop, against grpc-go", measure.PerSecond, "rpc-onloop", "grpc-go"),
			measure.AtLeast(6, "calls/s, 500 clients x 8 callers, handler on a goroutine, against grpc-go", measure.PerSecond, "rpc", "grpc-go"),
		},
		Serve: serveCrowd, Dial: dialCrowd,
	},
	{
		Name: "talk", Title: "Stream in both directions, items of 64 B, one at a time, blocking",
		On:      measure.SameCPU,
		Entries: contest.Blocking("rpc", "grpc-go"),
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "grpc-go", Paired: true,
		Bars: []measure.Bar{
			measure.AtMost(0.45, "stream in both directions, one item at a time, against grpc-go: p50", measure.P50, "rpc", "grpc-go"),
		},
		Serve: talkers.Serve, Dial: talkers.Dial,
	},
	{
		Name: "items", Title: "Stream in both directions, items of 64 B, as many as the window allows, blocking",
		Note: "Both have windows of 64 KiB. One goroutine sends, another one receives; per s counts items that are back.",
		On:   measure.OwnCPU, Entries: contest.Blocking("rpc", "grpc-go"),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "grpc-go", Paired: true,
		Bars: []measure.Bar{
			measure.AtLeast(10, "stream in both directions, window full, against grpc-go: items/s", measure.PerSecond, "rpc", "grpc-go"),
		},
		Serve: talkers.Serve, Dial: dialItems,
	},
	{
		Name: "oneway", Title: "Messages of 64 B, one way, blocking",
		Note: "4,096 on their way, each 1,024 answered; one write for each message of net.Conn.",
		On:   measure.OwnCPU, Entries: contest.Blocking("verbs", "actor", "net.Conn"),
		Columns: []string{measure.PerSecond, measure.MiBPerS, measure.CPUPer, measure.AllocsPer},
		Base:    "verbs",
		Bars: []measure.Bar{
			measure.AtLeast(0.6, "actor level's message rate against the verbs level, 64 B", measure.PerSecond, "actor", "verbs"),
		},
		Serve: smallFlow.Serve, Dial: smallFlow.Dial,
	},
	{
		Name: "pages", Title: "Messages of 4 KiB, one way, blocking",
		Note: "1,024 on their way, each 256 answered. verbs sends the same 4 KiB again and again, from the first-level cache; verbs-own has a " +
			"buffer for each message on its way, as actors do.",
		On: measure.OwnCPU, Entries: contest.Blocking("verbs", "verbs-own", "actor", "net.Conn"),
		Columns: []string{measure.PerSecond, measure.MiBPerS, measure.CPUPer, measure.AllocsPer},
		Base:    "verbs",
		Bars: []measure.Bar{
			measure.AtLeast(0.9, "actor level's message rate against the verbs level, 4 KiB", measure.PerSecond, "actor", "verbs"),
			measure.AtLeast(0.9, "the same against the verbs level with memory of its own for each message, 4 KiB", measure.PerSecond, "actor", "verbs-own"),
		},
		Serve: pageFlow.Serve, Dial: pageFlow.Dial,
	},
	{
		Name: "bulk", Title: "Messages of 1 MiB, one way, blocking, CRC off",
		Note: "16 on their way, each 4 answered; net.Conn writes the same 1 MiB again and again, and reads what there is.",
		On:   measure.OwnCPU, Entries: contest.Blocking("verbs", "actor", "net.Conn"),
		Columns: []string{measure.MiBPerS, measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "net.Conn",
		Bars: []measure.Bar{
			measure.AtLeast(0.9, "1 MiB messages at actor level against net.Conn", measure.MiBPerS, "actor", "net.Conn"),
		},
		Serve: largeFlow.Serve, Dial: largeFlow.Dial,
	},
	{
		Name: "overload", Title: "Overload: a call costs 50 us, 16 may be in flight",
		Note: "Four connections of 8 calls at most. Sustainable is what 8 callers get; then calls start at 0.9 and at 2 times that rate, " +
			"regardless of the outcome of earlier ones. Times are those of answered calls, from their start.",
		On: measure.OwnCPU, Entries: contest.Blocking("rpc"),
		Columns: []string{sustainable, belowP99, aboveP99, goodput, refusedBelow, refusedShare, answerP50, refusalP50, refusalP99},
		Bars: []measure.Bar{
			{
				What:   "overload: accepted p99 at 2x the sustainable load against 0.9x",
				Metric: aboveP99, OfItself: belowP99, Entry: "rpc", Most: 2,
			},
			{What: "overload: a refusal against an answer, p50", Metric: refusalP50, OfItself: answerP50, Entry: "rpc", Most: 1},
			{What: "overload: a refusal against an answer, p99", Metric: refusalP99, OfItself: aboveP99, Entry: "rpc", Most: 1},
		},
		Serve: serveOverload, Dial: dialOverload,
	},
}
