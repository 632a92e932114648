package main

import (
	"github.com/rdmactor/rdmactor/internal/measure"
	"github.com/rdmactor/rdmactor/internal/measure/contest"
)

// typed are the contestants that make requests to typed remote actors.
var typed = func() contest.Contestants {
	all := make(contest.Contestants)
	for name := range openers {
		all[name] = contest.Contestant{Serve: serveTyped, Dial: dialTyped}
	}
	return all
}()

// grains are the contestants that make requests to grains.
var grains = func() contest.Contestants {
	all := make(contest.Contestants)
	for name := range joiners {
		all[name] = contest.Contestant{Serve: serveGrains(2), Dial: dialGrain}
	}
	return all
}()

var (
	windowFlow = typedFlow{Size: contest.PayloadSize, Batch: 1024, Window: 16 << 10}
	openFlow   = typedFlow{Size: contest.PayloadSize, Batch: 1024}
)

// remoteScenarios compare typed remote actors.
var remoteScenarios = []measure.Scenario{
	{
		Name: "remote-request", Title: "RequestFuture of a typed message of 64 B, 1 caller",
		On:      measure.SameCPU,
		Entries: contest.Blocking(stock),
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.ClientAllocsPer},
		Base:    stock, Paired: true,
		Serve: typed.Serve, Dial: typed.Dial,
	},
	{
		Name: "remote-requests", Title: "RequestFuture of a typed message of 64 B, 64 callers",
		On:      measure.SameCPU,
		Entries: contest.Blocking(stock),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.ClientAllocsPer, measure.P50, measure.P99},
		Base:    stock, Paired: true,
		Serve: typed.Serve, Dial: typed.DialMany,
	},
	{
		Name: "remote-oneway", Title: "Typed messages of 64 B, one way, 16,384 on their way",
		Note: "The receiving actor answers each 1,024, and the sender waits for that.",
		On:   measure.SameCPU, Entries: contest.Blocking(stock),
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Base:    stock, Paired: true,
		Serve: windowFlow.serve, Dial: windowFlow.dial,
	},
	{
		Name: "remote-open", Title: "Typed messages of 64 B, one way, as many as the sender may send",
		Note: "Nothing slows the sender down but what it sends through. per s is what has arrived, until all has.",
		On:   measure.SameCPU, Entries: contest.Blocking(stock),
		Columns: []string{measure.PerSecond, accepted, measure.CPUPer, measure.AllocsPer},
		Base:    stock, Paired: true,
		Serve: openFlow.serve, Dial: openFlow.dial,
	},
	{
		Name: "remote-kill", Title: "kill -9: until 100 watchers of a process's actors have heard",
		On: measure.AnyCPU, Entries: contest.Blocking(stock), Cold: true,
		Columns: []string{measure.P50, measure.P99, lastHeard},
		Base:    stock, Paired: true,
		Serve: serveNothing, Dial: dialKill,
	},
	{
		Name: "remote-sink", Title: "300,000 messages of 1 KiB to an actor that needs 1 ms for each",
		Note: "Peak is the process's largest resident memory. The sender sends for 5 s at most.",
		On:   measure.AnyCPU, Entries: contest.Blocking(stock), Once: true, Cold: true,
		Columns: []string{sinkServerMiB, sinkClientMiB, sinkSent, sinkRefused, sinkDelivered},
		Serve:   serveSink, Dial: dialSink,
	},
}

// grainScenarios compare clusters, with the automanaged provider and the lookup disthash.
var grainScenarios = []measure.Scenario{
	{
		Name: "grain-request", Title: "Request to a grain of another member, 64 B, 1 caller",
		On:      measure.SameCPU,
		Entries: contest.Blocking(stock),
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer, grpcStreams},
		Base:    stock, Paired: true,
		Serve: grains.Serve, Dial: grains.Dial,
	},
	{
		Name: "grain-kill", Title: "kill -9 of one of three members: until 30 of its grains answer again",
		Note: "The provider refreshes each 200 ms. The callers ask again until there is an answer.",
		On:   measure.AnyCPU, Entries: contest.Blocking(stock), Cold: true,
		Columns: []string{allAnswered, memberLeft, afterLeft, grpcStreams},
		Base:    stock, Paired: true,
		Serve: serveGrains(3), Dial: dialGrainKill,
	},
}
