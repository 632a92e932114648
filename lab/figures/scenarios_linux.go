package main

import (
	"fmt"
	"slices"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

var (
	smallFlow = contest.Flow{Size: 64, Batch: 1024, Window: 4096}
	bulkFlow  = contest.Flow{Size: 1 << 20, Batch: 1, Window: 4}
	web       = contest.Web{Body: 512}
)

// allScenarios returns the scenarios in the order of `figures all`. Those that need most ports are
// first, and the one that leaves ports in TIME_WAIT is last. The name of a figure is that of its
// scenario up to a hyphen. loops is the value of the -loops flag.
func allScenarios(loops int) []measure.Scenario {
	return slices.Concat(crowdScenarios(), echoScenarios(), streamScenarios(), connScenarios(), severalLoops(loops), []measure.Scenario{filesScenario(), {
		Name: "http", Title: "net/http, GET of 512 B, 64 connections and goroutines, blocking", On: measure.SameCPU, Paired: true,
		Entries: contest.Blocking("rdmanet", "net.Conn"), Base: "net.Conn",
		Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.P50, measure.P99},
		Bars: []measure.Bar{
			measure.AtLeast(0.95, "net/http over rdmanet, 64 connections, against TCP: requests per second", measure.PerSecond, "rdmanet", "net.Conn"),
			measure.Published("the same: CPU per request", measure.CPUPer, "rdmanet", "net.Conn"),
		},
		Serve: web.Serve, Dial: web.Dial,
	}})
}

func echoScenarios() []measure.Scenario {
	columns := []string{measure.P50, measure.P99, measure.CPUPer, measure.AllocsPer}
	return []measure.Scenario{
		{
			Name: "echo", Title: "64 B echo, blocking", On: measure.SameCPU, Paired: true,
			Entries: contest.Blocking("actor", "net.Conn"), Base: "net.Conn", Columns: columns,
			Bars: []measure.Bar{
				measure.AtMost(1, "64 B echo, blocking, against net.Conn: p50", measure.P50, "actor", "net.Conn"),
				measure.AtMost(1, "the same: CPU per round trip", measure.CPUPer, "actor", "net.Conn"),
			},
			Serve: contest.Ours.Serve, Dial: contest.Ours.Dial,
		},
		{
			Name: "spin", Title: "64 B echo, busy polling", On: measure.OwnCPU, Paired: true,
			Note:    "The other program spins on read(2) and write(2).",
			Entries: slices.Concat(contest.Busy("actor"), contest.Blocking("spinning")), Base: "spinning", Columns: columns,
			Bars: []measure.Bar{
				measure.AtMost(1.35, "64 B echo, busy poll, against spinning on read and write: p50", measure.P50, "actor busy", "spinning"),
			},
			Serve: contest.Ours.Serve, Dial: contest.Ours.Dial,
		},
	}
}

// streamScenarios returns the scenarios that measure messages in one direction.
func streamScenarios() []measure.Scenario {
	const tcp = "read/write"
	bulk := contest.Blocking("verbs", "verbs", "verbs-write", "verbs-write", tcp)
	var bulkBars []measure.Bar
	for i := range bulk[:len(bulk)-1] {
		bulk[i].CRC = i%2 == 1
		bar := measure.Bar{
			What:   fmt.Sprintf("1 MiB messages, %s, against TCP: throughput", bulk[i].Name()),
			Metric: measure.MiBPerS, Entry: bulk[i].Name(), Base: tcp, Least: 0.9,
		}
		if bulk[i].CRC {
			bar.Least = 0.7
		}
		bulkBars = append(bulkBars, bar)
	}
	columns := []string{measure.MiBPerS, measure.ServerCPUPer, measure.ClientCPUPer, measure.CPUPer}
	return []measure.Scenario{
		{
			Name: "oneway", Title: "One-way 64 B messages, blocking", On: measure.OwnCPU, Paired: true,
			Note:    "4,096 on their way, each 1,024 answered; the other program has one write(2) for each message.",
			Entries: contest.Blocking("actor", tcp), Base: tcp,
			Columns: []string{measure.PerSecond, measure.ServerCPUPer, measure.ClientCPUPer, measure.CPUPer, measure.AllocsPer},
			Bars: []measure.Bar{
				measure.AtLeast(8, "one-way 64 B messages, against one write each: messages per second", measure.PerSecond, "actor", tcp),
				measure.AtLeast(2e6, "the same: messages per second", measure.PerSecond, "actor"),
				measure.AtMost(0.05, "the same: allocations per message, both sides", measure.AllocsPer, "actor"),
			},
			Serve: smallFlow.Serve, Dial: smallFlow.Dial,
		},
		{
			Name: "bulk", Title: "1 MiB Sends and Writes at verbs level, blocking", On: measure.OwnCPU, Paired: true,
			Note:    "4 on their way, all from the same memory, as the other program's are. CPU is of the receiver and of the sender.",
			Entries: bulk, Base: tcp, Columns: columns, Bars: bulkBars,
			Serve: bulkFlow.Serve, Dial: bulkFlow.Dial,
		},
		{
			Name: "large", Title: "Large messages between actors, blocking", On: measure.OwnCPU, Paired: true,
			Note:    "1 MiB of them on their way, 4 at least; the other program writes 1 MiB at a time.",
			Entries: contest.Blocking("actor 32 KiB", "actor 64 KiB", "actor 128 KiB", "actor 256 KiB", "actor 1024 KiB", tcp), Base: tcp,
			Columns: columns,
			Bars: []measure.Bar{
				measure.AtLeast(0.9, "1 MiB messages between actors, against TCP: throughput", measure.MiBPerS, "actor 1024 KiB", tcp),
			},
			Serve: func(e measure.Entry) (measure.Service, error) {
				f, e := sizedFlow(e)
				return f.Serve(e)
			},
			Dial: func(addr string, e measure.Entry) (measure.Client, error) {
				f, e := sizedFlow(e)
				return f.Dial(addr, e)
			},
		},
	}
}

// sizedFlow returns the flow with the size in a contestant's name, and the entry without it. Every
// receiver accepts messages of 1 MiB.
func sizedFlow(e measure.Entry) (contest.Flow, measure.Entry) {
	f, kib := bulkFlow, 0
	if _, err := fmt.Sscanf(e.Contestant, "actor %d KiB", &kib); err == nil {
		e.Contestant = "actor"
		f.Largest, f.Size = f.Size, kib<<10
		f.Window = max(f.Window, f.Largest/f.Size)
		f.Batch = f.Window / 4
	}
	return f, e
}

// connScenarios returns the scenarios that measure how connections are made and closed, or stay
// open.
func connScenarios() []measure.Scenario {
	return []measure.Scenario{
		{
			Name: "connect", Title: "One connection at a time, established on both sides, blocking", On: measure.SameCPU, Paired: true,
			Note:    "Against dial, accept and a round trip. All stay open, so that no end is measured.",
			Entries: contest.Blocking("actor", "net.Conn"), Base: "net.Conn",
			Columns: []string{measure.P50, measure.P99, measure.CPUPer, measure.AllocsPer},
			Bars: []measure.Bar{
				measure.AtMost(1.5, "connection, established on both sides, against dial, accept, round trip: p50", measure.P50, "actor", "net.Conn"),
				measure.Published("the same: CPU per connection", measure.CPUPer, "actor", "net.Conn"),
			},
			Serve: contest.ServeConnect, Dial: contest.DialConnect,
		},
		{
			Name: "rate", Title: "Connect and close, 64 at once, one loop on each side, blocking", On: measure.OwnCPU, Paired: true,
			Note:    "Beside it what Go's net does with as many goroutines.",
			Entries: contest.Blocking("actor", "net.Conn"), Base: "net.Conn",
			Columns: []string{measure.PerSecond, measure.ServerCPUPer, measure.ClientCPUPer, measure.AllocsPer},
			Bars: []measure.Bar{
				measure.Published("connections per second, one loop, connect and close", measure.PerSecond, "actor"),
				measure.Published("the same, against TCP", measure.PerSecond, "actor", "net.Conn"),
			},
			Serve: serveRate, Dial: dialRate,
		},
	}
}

// severalLoops returns the scenarios that compare a server with several loops to one with a single
// loop.
func severalLoops(loops int) []measure.Scenario {
	entries := contest.Blocking("actor", "actor")
	entries[0].Loops, entries[1].Loops = 1, max(2, loops)
	one, several := entries[0].Name(), entries[1].Name()
	list := []measure.Scenario{
		{Name: "loops-messages", Title: "64 B round trips, 64 connections, 16 under way on each, blocking", Dial: dialTalk},
		{Name: "loops-connections", Title: "Connect and close, 64 at once, blocking", Dial: dialRate},
	}
	for i := range list {
		s := &list[i]
		s.On, s.Entries, s.Base, s.Serve, s.Paired = measure.AnyCPU, entries, one, serveLoops, true
		s.Note = "Clients have two loops at least. Where there are few CPUs both processes share them, and how many are in use says who is the limit."
		s.Columns = []string{measure.PerSecond, measure.ServerCPUs, measure.ClientCPUs}
		s.Bars = []measure.Bar{
			measure.Published(s.Title+": per second, "+several, measure.PerSecond, several),
			measure.Published("the same, against one loop", measure.PerSecond, several, one),
		}
	}
	return list
}

// crowdScenarios returns the scenarios that measure many connections in one process pair.
func crowdScenarios() []measure.Scenario {
	actor := []measure.Entry{{Contestant: "actor", Ours: true, Wait: eventloop.Block}}
	return []measure.Scenario{
		{
			Name: "idle", Title: "15,000 idle connections in one process pair", On: measure.AnyCPU, Once: true, Cold: true,
			Note:    "Go memory is everything that the runtime has, less what it had before the first connection.",
			Entries: actor,
			Columns: []string{measure.Connections, acceptedKiB, dialledKiB, measure.ServerGoroutines, measure.ClientGoroutines},
			Bars: []measure.Bar{
				measure.AtMost(8, "15,000 idle connections, accepted: KiB of Go memory each", acceptedKiB, "actor"),
				measure.AtMost(8, "15,000 idle connections, dialled: KiB of Go memory each", dialledKiB, "actor"),
				measure.AtMost(50, "15,000 idle connections: goroutines of the server", measure.ServerGoroutines, "actor"),
				measure.AtMost(50, "15,000 idle connections: goroutines of the client", measure.ClientGoroutines, "actor"),
			},
			Serve: serveIdle, Dial: dialIdle,
		},
		{
			Name: "storm", Title: "10,000 peers at once, 1 % of them hostile", On: measure.OwnCPU, Once: true, Cold: true,
			Note:    "Each good one echoes a message and stays until all have; its time is from dial to echo. All peers are one process.",
			Entries: actor,
			Columns: []string{
				goodServed, measure.P50, measure.P99, goodSeconds, hostileEnded, hostileSeconds,
				goBefore, goWith, goAfter, rssPeak, rssAfter, socketsBefore, socketsAfter,
			},
			Bars: []measure.Bar{
				measure.AtLeast(stormGood, "storm of 10,000, 1 % hostile: good peers served", goodServed, "actor"),
				measure.AtLeast(stormHostiles, "the same: hostile peers ended", hostileEnded, "actor"),
				measure.Published("the same: server's MiB resident at the peak", rssPeak, "actor"),
				{What: "the same: server's sockets before against those after", Metric: socketsBefore, OfItself: socketsAfter, Entry: "actor", Least: 1},
			},
			Serve: serveStorm, Dial: dialStorm,
		},
	}
}
