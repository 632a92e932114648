package main

import (
	"slices"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// contestants maps names to all contestants. README.md describes each one.
var contestants = contest.Contestants{
	"verbs":      contest.Ours["verbs"],
	"actor":      contest.Ours["actor"],
	"rdmanet":    contest.Ours["rdmanet"],
	"net.Conn":   contest.Ours["net.Conn"],
	"crypto/tls": contest.Ours["crypto/tls"],
	"rpc":        {Serve: serveRPC, Dial: dialRPC},
	"rpc-onloop": {Serve: serveRPC, Dial: dialRPC},
	"net/rpc":    {Serve: serveNetRPC, Dial: dialNetRPC},
	"grpc-go":    {Serve: serveGRPC, Dial: dialGRPC},
	stock:        {Serve: serveTyped, Dial: dialTyped},
	ours:         {Serve: serveTyped, Dial: dialTyped},
	oursOnLoop:   {Serve: serveTyped, Dial: dialTyped},
}

// onceOnly allows for a run's one-time allocations, divided by the number of its calls.
const onceOnly = 0.05

var (
	smallFlow  = contest.Flow{Size: 64, Batch: 1024, Window: 4096}
	pageFlow   = contest.Flow{Size: 4 << 10, Batch: 256, Window: 1024}
	largeFlow  = contest.Flow{Size: 1 << 20, Batch: 4, Window: 16}
	windowFlow = typedFlow{Size: contest.PayloadSize, Batch: 1024, Window: 16 << 10}
	openFlow   = typedFlow{Size: contest.PayloadSize, Batch: 1024}
)

var scenarios = []measure.Scenario{
	{
		Name: "echo", Title: "Unary echo, 64 B, 1 caller, blocking",
		Note: "verbs, actor and net.Conn have no calls: one message there, one back. rdmactor at the verbs and actor levels " +
			"answers inside the loop, without a goroutine.",
		On:      measure.SameCPU,
		Entries: contest.Blocking("verbs", "actor", "rpc-onloop", "rpc", "rdmanet", "net.Conn", "net/rpc", "grpc-go", "proto.actor"),
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "grpc-go",
		Bars: slices.Concat(
			measure.Bar{What: "call, 1 caller, blocking, %s, against grpc-go: p50", Metric: measure.P50, Base: "grpc-go", Most: 0.45}.Of(bothRPC...),
			measure.Bar{What: "allocations per call, client and server, 1 caller, %s", Metric: measure.AllocsPer, Most: 2, Slack: onceOnly}.Of(bothRPC...),
		),
		Serve: contestants.Serve, Dial: contestants.Dial,
	},
	{
		Name: "busy", Title: "Unary echo, 64 B, 1 caller, busy polling",
		Note:    "rdmactor polls on both sides; the others cannot, and block on the same CPUs.",
		On:      measure.OwnCPU,
		Entries: slices.Concat(contest.Busy("verbs", "actor", "rpc-onloop", "rpc", "rdmanet"), contest.Blocking("net.Conn", "grpc-go")),
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond},
		Base:    "grpc-go",
		Bars:    measure.Bar{What: "call, 1 caller, %s, against grpc-go: p50", Metric: measure.P50, Base: "grpc-go", Most: 0.25}.Of("rpc-onloop busy", "rpc busy"),
		Serve:   contestants.Serve, Dial: contestants.Dial,
	},
	{
		Name: "calls", Title: "Calls, 64 B, 64 goroutines on one connection, blocking",
		On:      measure.SameCPU,
		Entries: contest.Blocking("rpc-onloop", "rpc", "net/rpc", "grpc-go", "proto.actor"),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.P50, measure.P99},
		Base:    "grpc-go",
		Bars: slices.Concat(
			measure.Bar{What: "calls/s, 64 callers, %s, against grpc-go", Metric: measure.PerSecond, Base: "grpc-go", Least: 6}.Of(bothRPC...),
			measure.Bar{What: "CPU per call, 64 callers, %s, against grpc-go", Metric: measure.CPUPer, Base: "grpc-go", Most: 0.2}.Of(bothRPC...),
			measure.Bar{What: "allocations per call, client and server, 64 callers, %s", Metric: measure.AllocsPer, Most: 2, Slack: onceOnly}.Of(bothRPC...),
		),
		Serve: contestants.Serve, Dial: contestants.DialMany,
	},
	{
		Name: "crowd", Title: "Calls, 64 B, 500 clients with 8 goroutines and a connection each, blocking",
		On:      measure.SameCPU,
		Entries: contest.Blocking("rpc-onloop", "rpc", "grpc-go"),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "grpc-go", Paired: true,
		Bars:  measure.Bar{What: "calls/s, 500 clients x 8 callers, %s, against grpc-go", Metric: measure.PerSecond, Base: "grpc-go", Least: 6}.Of(bothRPC...),
		Serve: serveCrowd, Dial: dialCrowd,
	},
	{
		Name: "talk", Title: "Stream in both directions, items of 64 B, one at a time, blocking",
		On:      measure.SameCPU,
		Entries: contest.Blocking("rpc", "grpc-go"),
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "grpc-go", Paired: true,
		Bars: []measure.Bar{{
			What: "stream in both directions, one item at a time, against grpc-go: p50", Metric: measure.P50, Entry: "rpc", Base: "grpc-go", Most: 0.45,
		}},
		Serve: talkers.Serve, Dial: talkers.Dial,
	},
	{
		Name: "items", Title: "Stream in both directions, items of 64 B, as many as the window allows, blocking",
		Note: "Both have windows of 64 KiB. One goroutine sends, another one receives; per s counts items that are back.",
		On:   measure.OwnCPU, Entries: contest.Blocking("rpc", "grpc-go"),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    "grpc-go", Paired: true,
		Bars: []measure.Bar{{
			What: "stream in both directions, window full, against grpc-go: items/s", Metric: measure.PerSecond, Entry: "rpc", Base: "grpc-go", Least: 10,
		}},
		Serve: talkers.Serve, Dial: dialItems,
	},
	{
		Name: "oneway", Title: "Messages of 64 B, one way, blocking",
		Note: "4,096 on their way, each 1,024 answered; one write for each message of net.Conn.",
		On:   measure.OwnCPU, Entries: contest.Blocking("verbs", "actor", "net.Conn"),
		Columns: messageColumns,
		Base:    "verbs",
		Bars: []measure.Bar{
			{What: "actor level's message rate against the verbs level, 64 B", Metric: measure.PerSecond, Entry: "actor", Base: "verbs", Least: 0.6},
		},
		Serve: smallFlow.Serve, Dial: smallFlow.Dial,
	},
	{
		Name: "pages", Title: "Messages of 4 KiB, one way, blocking",
		Note: "1,024 on their way, each 256 answered. verbs sends the same 4 KiB again and again, from the first-level cache; verbs-own has a " +
			"buffer for each message on its way, as actors do.",
		On: measure.OwnCPU, Entries: contest.Blocking("verbs", "verbs-own", "actor", "net.Conn"),
		Columns: messageColumns,
		Base:    "verbs",
		Bars: []measure.Bar{
			{What: "actor level's message rate against the verbs level, 4 KiB", Metric: measure.PerSecond, Entry: "actor", Base: "verbs", Least: 0.9},
			{
				What:   "the same against the verbs level with memory of its own for each message, 4 KiB",
				Metric: measure.PerSecond, Entry: "actor", Base: "verbs-own", Least: 0.9,
			},
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
			{What: "1 MiB messages at actor level against net.Conn", Metric: measure.MiBPerS, Entry: "actor", Base: "net.Conn", Least: 0.9},
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
			{What: "overload: accepted p99 at 2x the sustainable load against 0.9x", Metric: aboveP99, OfItself: belowP99, Entry: "rpc", Most: 2},
			{What: "overload: a refusal against an answer, p50", Metric: refusalP50, OfItself: answerP50, Entry: "rpc", Most: 1},
			{What: "overload: a refusal against an answer, p99", Metric: refusalP99, OfItself: aboveP99, Entry: "rpc", Most: 1},
		},
		Serve: serveOverload, Dial: dialOverload,
	},
}

// compareRemotes completes a scenario of two entries of this project, with the actor on the loop
// and with the default mailbox, and Proto.Actor's remote. The bars are for both.
func compareRemotes(s measure.Scenario, onLoop, inMailbox string, bars ...measure.Bar) measure.Scenario {
	s.On, s.Entries, s.Base, s.Paired = measure.SameCPU, contest.Blocking(onLoop, inMailbox, stock), stock, true
	for _, b := range bars {
		s.Bars = append(s.Bars, b.Of(onLoop, inMailbox)...)
	}
	return s
}

// sinkMost is the aim for memory with a slow actor: the configured amount, and room for Go, in MiB.
const sinkMost = queueMiB + 64

// remoteScenarios compare typed remote actors, and clusters with the automanaged provider and the
// lookup disthash.
var remoteScenarios = []measure.Scenario{
	compareRemotes(measure.Scenario{
		Name: "remote-request", Title: "RequestFuture of a typed message of 64 B, 1 caller",
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.ClientAllocsPer},
		Serve:   contestants.Serve, Dial: contestants.Dial,
	}, oursOnLoop, ours,
		measure.Bar{What: "request, 1 caller, %s, against Proto.Actor's remote: p50", Metric: measure.P50, Base: stock, Most: 0.5},
		measure.Bar{What: "CPU per request, 1 caller, %s, against Proto.Actor's remote", Metric: measure.CPUPer, Base: stock, Most: 0.5},
		measure.Bar{What: "allocations per request, client, %s", Metric: measure.ClientAllocsPer, Most: 15},
		measure.Bar{What: "allocations per request, server, %s", Metric: measure.ServerAllocsPer, Most: 15}),
	compareRemotes(measure.Scenario{
		Name: "remote-requests", Title: "RequestFuture of a typed message of 64 B, 64 callers",
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.ClientAllocsPer, measure.P50, measure.P99},
		Serve:   contestants.Serve, Dial: contestants.DialMany,
	}, oursOnLoop, ours,
		measure.Bar{What: "requests/s, 64 callers, %s, against Proto.Actor's remote", Metric: measure.PerSecond, Base: stock, Least: 1.7},
		measure.Bar{What: "CPU per request, 64 callers, %s, against Proto.Actor's remote", Metric: measure.CPUPer, Base: stock, Most: 0.5}),
	compareRemotes(measure.Scenario{
		Name: "remote-oneway", Title: "Typed messages of 64 B, one way, 16,384 on their way",
		Note:    "The receiving actor answers each 1,024, and the sender waits for that.",
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Serve:   windowFlow.serve, Dial: windowFlow.dial,
	}, oursOnLoop, ours,
		measure.Bar{What: "messages/s one way, %s, against Proto.Actor's remote", Metric: measure.PerSecond, Base: stock, Least: 2}),
	compareRemotes(measure.Scenario{
		Name: "remote-open", Title: "Typed messages of 64 B, one way, as many as the sender may send",
		Note:    "Only the transport slows the sender down. per s is the rate of arrivals, until the last message.",
		Columns: []string{measure.PerSecond, accepted, measure.CPUPer, measure.AllocsPer},
		Serve:   openFlow.serve, Dial: openFlow.dial,
	}, onLoopWaits, oursWaits,
		measure.Bar{What: "messages/s one way, sender waits for room, %s, against Proto.Actor's remote", Metric: measure.PerSecond, Base: stock, Least: 2}),
	{
		Name: "remote-sink", Title: "300,000 messages of 1 KiB to an actor that needs 1 ms for each",
		Note: "Peak is the process's largest resident memory. The sender sends for 5 s at most.",
		On:   measure.AnyCPU, Entries: contest.Blocking(ours, oursOffLoop, oursWaits, stock), Once: true, Cold: true,
		Columns: []string{sinkServerMiB, sinkClientMiB, sinkSent, sinkRefused, sinkDelivered},
		Bars: slices.Concat(
			measure.Bar{What: "slow actor, %s: sender's memory at its peak, MiB", Metric: sinkClientMiB, Most: sinkMost}.Of(ours, oursOffLoop, oursWaits),
			measure.Bar{What: "slow actor, %s: receiver's memory at its peak, MiB", Metric: sinkServerMiB, Most: sinkMost}.Of(ours, oursOffLoop, oursWaits),
		),
		Serve: serveSink, Dial: dialSink,
	},
	compareRemotes(measure.Scenario{
		Name: "grain-request", Title: "Request to a grain of another member, 64 B, 1 caller",
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Serve:   grains.Serve, Dial: grains.Dial,
	}, oursOnLoop, ours,
		measure.Bar{What: "request to a grain, 1 caller, %s, against Proto.Actor's remote: p50", Metric: measure.P50, Base: stock, Most: 0.5}),
	{
		Name: grainKill, Title: "kill -9 of one of three members, until 30 of its grains answer again",
		Note: "The provider refreshes each 200 ms. The callers repeat their requests until they are answered.",
		On:   measure.AnyCPU, Entries: contest.Blocking(ours, stock), Cold: true,
		Columns: []string{allAnswered, memberLeft, afterLeft},
		Base:    stock, Paired: true,
		Bars: []measure.Bar{
			{What: "kill -9: until 30 grains answer again, after the provider has found it, ms", Metric: afterLeft, Entry: ours, Most: 300},
		},
		Serve: serveGrains(3), Dial: dialGrainKill, Join: joinGrainKill,
	},
}
