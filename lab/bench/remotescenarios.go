package main

import (
	"fmt"
	"slices"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
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

// requestBars returns the aims for an entry's requests of one caller.
func requestBars(entry, what string) []measure.Bar {
	return []measure.Bar{
		measure.AtMost(0.5, "request, 1 caller, "+what+", against Proto.Actor's remote: p50", measure.P50, entry, stock),
		measure.AtMost(0.5, "the same: CPU per request", measure.CPUPer, entry, stock),
		measure.AtMost(15, "the same: allocations per request, client", measure.ClientAllocsPer, entry),
		measure.AtMost(15, "the same: allocations per request, server", measure.ServerAllocsPer, entry),
	}
}

// sinkBars returns the aims for an entry's memory: the configured amount, and room for Go.
func sinkBars(entry string) []measure.Bar {
	const room = 64 // MiB
	return []measure.Bar{
		measure.AtMost(queueMiB+room, "slow actor, "+entry+": sender's memory at its peak, MiB", sinkClientMiB, entry),
		measure.AtMost(queueMiB+room, "slow actor, "+entry+": receiver's memory at its peak, MiB", sinkServerMiB, entry),
	}
}

var (
	windowFlow = typedFlow{Size: contest.PayloadSize, Batch: 1024, Window: 16 << 10}
	openFlow   = typedFlow{Size: contest.PayloadSize, Batch: 1024}
)

// aim is an aim for both entries of this project.
type aim struct {
	bar    func(bound float64, what, metric, entry string, base ...string) measure.Bar
	bound  float64
	what   string // %s stands for the entry
	metric string
}

// completeVersus completes a scenario of two entries of this project, a what on the loop and one
// with the default mailbox, and Proto.Actor's remote.
func completeVersus(s measure.Scenario, what, onLoop, inMailbox string, aims ...aim) measure.Scenario {
	s.On, s.Entries, s.Base, s.Paired = measure.SameCPU, contest.Blocking(onLoop, inMailbox, stock), stock, true
	for _, a := range aims {
		s.Bars = append(s.Bars,
			a.bar(a.bound, fmt.Sprintf(a.what, what+" on the loop"), a.metric, onLoop, stock),
			a.bar(a.bound, "the same, "+what+" with the default mailbox", a.metric, inMailbox, stock))
	}
	return s
}

// remoteScenarios compare typed remote actors.
var remoteScenarios = []measure.Scenario{
	completeVersus(measure.Scenario{
		Name: "remote-request", Title: "RequestFuture of a typed message of 64 B, 1 caller",
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.ClientAllocsPer},
		Bars:    slices.Concat(requestBars(oursOnLoop, "actor on the loop"), requestBars(ours, "actor with the default mailbox")),
		Serve:   typed.Serve, Dial: typed.Dial,
	}, "actor", oursOnLoop, ours),
	completeVersus(measure.Scenario{
		Name: "remote-requests", Title: "RequestFuture of a typed message of 64 B, 64 callers",
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.ClientAllocsPer, measure.P50, measure.P99},
		Serve:   typed.Serve, Dial: typed.DialMany,
	}, "actor", oursOnLoop, ours,
		aim{measure.AtLeast, 1.7, "requests/s, 64 callers, %s, against Proto.Actor's remote", measure.PerSecond},
		aim{measure.AtMost, 0.5, "CPU per request, 64 callers, %s, against Proto.Actor's remote", measure.CPUPer}),
	completeVersus(measure.Scenario{
		Name: "remote-oneway", Title: "Typed messages of 64 B, one way, 16,384 on their way",
		Note:    "The receiving actor answers each 1,024, and the sender waits for that.",
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer},
		Serve:   windowFlow.serve, Dial: windowFlow.dial,
	}, "actor", oursOnLoop, ours,
		aim{measure.AtLeast, 2, "messages/s one way, %s, against Proto.Actor's remote", measure.PerSecond}),
	completeVersus(measure.Scenario{
		Name: "remote-open", Title: "Typed messages of 64 B, one way, as many as the sender may send",
		Note:    "Only the transport slows the sender down. per s is the rate of arrivals, until the last message.",
		Columns: []string{measure.PerSecond, accepted, measure.CPUPer, measure.AllocsPer},
		Serve:   openFlow.serve, Dial: openFlow.dial,
	}, "actor", onLoopWaits, oursWaits,
		aim{measure.AtLeast, 2, "messages/s one way, sender waits for room, %s, against Proto.Actor's remote", measure.PerSecond}),
	{
		Name: "remote-sink", Title: "300,000 messages of 1 KiB to an actor that needs 1 ms for each",
		Note: "Peak is the process's largest resident memory. The sender sends for 5 s at most.",
		On:   measure.AnyCPU, Entries: contest.Blocking(ours, oursOffLoop, oursWaits, stock), Once: true, Cold: true,
		Columns: []string{sinkServerMiB, sinkClientMiB, sinkSent, sinkRefused, sinkDelivered},
		Bars:    slices.Concat(sinkBars(ours), sinkBars(oursOffLoop), sinkBars(oursWaits)),
		Serve:   serveSink, Dial: dialSink,
	},
}

// grainScenarios compare clusters, with the automanaged provider and the lookup disthash.
var grainScenarios = []measure.Scenario{
	completeVersus(measure.Scenario{
		Name: "grain-request", Title: "Request to a grain of another member, 64 B, 1 caller",
		Columns: []string{measure.P50, measure.P90, measure.P99, measure.PerSecond, measure.CPUPer, measure.AllocsPer, grpcStreams},
		Serve:   grains.Serve, Dial: grains.Dial,
	}, "grain", oursOnLoop, ours,
		aim{measure.AtMost, 0.5, "request to a grain, 1 caller, %s, against Proto.Actor's remote: p50", measure.P50}),
	{
		Name: "grain-kill", Title: "kill -9 of one of three members, until 30 of its grains answer again",
		Note: "The provider refreshes each 200 ms. The callers repeat their requests until they are answered.",
		On:   measure.AnyCPU, Entries: contest.Blocking(ours, stock), Cold: true,
		Columns: []string{allAnswered, memberLeft, afterLeft, grpcStreams},
		Base:    stock, Paired: true,
		Bars: []measure.Bar{
			measure.AtMost(300, "kill -9: until 30 grains answer again, after the provider has found it, ms", afterLeft, ours),
		},
		Serve: serveGrains(3), Dial: dialGrainKill,
	},
}
