package main

import (
	"fmt"
	"slices"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

var (
	smallFlow = contest.Flow{Size: 64, Batch: 1024, Window: 4096}
	bulkFlow  = contest.Flow{Size: 1 << 20, Batch: 1, Window: 4}
	web       = contest.Web{Body: 512}

	tripColumns = []string{measure.P50, measure.P99, measure.CPUPer, measure.AllocsPer}
	bulkColumns = []string{measure.MiBPerS, measure.ServerCPUPer, measure.ClientCPUPer, measure.CPUPer}
)

// tcp is the contestant with one read(2) or write(2) for each message.
const tcp = "read/write"

// allScenarios returns the scenarios in the order of `figures all`. Those that need most ports are
// first, and the one that leaves ports in TIME_WAIT is late. loops is the value of the -loops flag.
func allScenarios(loops int) []measure.Scenario {
	return []measure.Scenario{
		{
			Name: "idle", Title: "15,000 idle connections in one process pair", On: measure.AnyCPU, Once: true, Cold: true,
			Note:    "Go memory is everything that the runtime has, less what it had before the first connection.",
			Entries: contest.Blocking("actor"),
			Columns: []string{measure.Connections, acceptedKiB, dialledKiB, measure.ServerGoroutines, measure.ClientGoroutines},
			Bars: []measure.Bar{
				{What: "15,000 idle connections, accepted: KiB of Go memory each", Metric: acceptedKiB, Entry: "actor", Most: 8},
				{What: "15,000 idle connections, dialled: KiB of Go memory each", Metric: dialledKiB, Entry: "actor", Most: 8},
				{What: "15,000 idle connections: goroutines of the server", Metric: measure.ServerGoroutines, Entry: "actor", Most: 50},
				{What: "15,000 idle connections: goroutines of the client", Metric: measure.ClientGoroutines, Entry: "actor", Most: 50},
			},
			Serve: serveIdle, Dial: dialIdle,
		},
		{
			Name: "storm", Title: "10,000 peers at once, 1 % of them hostile", On: measure.OwnCPU, Once: true, Cold: true,
			Note:    "Each good one echoes a message and stays until all have; its time is from dial to echo. All peers are one process.",
			Entries: contest.Blocking("actor"),
			Columns: []string{
				goodServed, measure.P50, measure.P99, goodSeconds, hostileEnded, hostileSeconds,
				goBefore, goWith, goAfter, rssPeak, rssAfter, socketsBefore, socketsAfter,
			},
			Bars: []measure.Bar{
				{What: "storm of 10,000, 1 % hostile: good peers served", Metric: goodServed, Entry: "actor", Least: stormGood},
				{What: "the same: hostile peers ended", Metric: hostileEnded, Entry: "actor", Least: stormHostiles},
				{What: "the same: server's sockets before against those after", Metric: socketsBefore, OfItself: socketsAfter, Entry: "actor", Least: 1},
			},
			Serve: serveStorm, Dial: dialStorm,
		},
		{
			Name: "echo", Title: "64 B echo, blocking", On: measure.SameCPU, Paired: true,
			Entries: contest.Blocking("actor", "net.Conn"), Base: "net.Conn", Columns: tripColumns,
			Bars: []measure.Bar{
				{What: "64 B echo, blocking, against net.Conn: p50", Metric: measure.P50, Entry: "actor", Base: "net.Conn", Most: 1},
				{What: "the same: CPU per round trip", Metric: measure.CPUPer, Entry: "actor", Base: "net.Conn", Most: 1},
			},
			Serve: contest.Ours.Serve, Dial: contest.Ours.Dial,
		},
		{
			Name: "spin", Title: "64 B echo, busy polling", On: measure.OwnCPU, Paired: true,
			Note:    "The other program spins on read(2) and write(2).",
			Entries: slices.Concat(contest.Busy("actor"), contest.Blocking("spinning")), Base: "spinning", Columns: tripColumns,
			Bars: measure.Bar{
				What: "64 B echo, %s, against spinning on read and write: p50", Metric: measure.P50, Base: "spinning", Most: 1.35,
			}.Of("actor busy"),
			Serve: contest.Ours.Serve, Dial: contest.Ours.Dial,
		},
		{
			Name: "oneway", Title: "One-way 64 B messages, blocking", On: measure.OwnCPU, Paired: true,
			Note:    "4,096 on their way, each 1,024 answered; the other program has one write(2) for each message.",
			Entries: contest.Blocking("actor", tcp), Base: tcp,
			Columns: []string{measure.PerSecond, measure.ServerCPUPer, measure.ClientCPUPer, measure.CPUPer, measure.AllocsPer},
			Bars: []measure.Bar{
				{What: "one-way 64 B messages, against one write each: per second", Metric: measure.PerSecond, Entry: "actor", Base: tcp, Least: 8},
				{What: "the same: messages per second", Metric: measure.PerSecond, Entry: "actor", Least: 6e6},
				{What: "the same: allocations per message, both sides", Metric: measure.AllocsPer, Entry: "actor", Most: 0.05},
			},
			Serve: smallFlow.Serve, Dial: smallFlow.Dial,
		},
		{
			Name: "bulk", Title: "1 MiB Sends and Writes at verbs level, blocking", On: measure.OwnCPU, Paired: true,
			Note:    "4 on their way, all from the same memory, as the other program's are. CPU is of the receiver and of the sender.",
			Entries: slices.Concat(withCRC("verbs"), withCRC("verbs-write"), contest.Blocking(tcp)), Base: tcp, Columns: bulkColumns,
			Bars: slices.Concat(
				measure.Bar{What: "1 MiB messages, %s, against TCP: throughput", Metric: measure.MiBPerS, Base: tcp, Least: 0.9}.Of("verbs", "verbs-write"),
				measure.Bar{What: "1 MiB messages, %s, against TCP: throughput", Metric: measure.MiBPerS, Base: tcp, Least: 0.7}.Of("verbs CRC", "verbs-write CRC"),
			),
			Serve: bulkFlow.Serve, Dial: bulkFlow.Dial,
		},
		{
			Name: "large", Title: "Large messages between actors, blocking", On: measure.OwnCPU, Paired: true,
			Note:    "1 MiB of them on their way, 4 at least; the other program writes 1 MiB at a time.",
			Entries: contest.Blocking("actor 32 KiB", "actor 64 KiB", "actor 128 KiB", "actor 256 KiB", "actor 1024 KiB", tcp), Base: tcp,
			Columns: bulkColumns,
			Bars: measure.Bar{
				What: "large messages, %s, against TCP: throughput", Metric: measure.MiBPerS, Base: tcp, Least: 0.9,
			}.Of("actor 1024 KiB"),
			Serve: func(e measure.Entry) (measure.Service, error) {
				f, e := sizedFlow(e)
				return f.Serve(e)
			},
			Dial: func(addr string, e measure.Entry) (measure.Client, error) {
				f, e := sizedFlow(e)
				return f.Dial(addr, e)
			},
		},
		{
			Name: "connect", Title: "One connection at a time, established on both sides, blocking", On: measure.SameCPU, Paired: true,
			Note:    "Against dial, accept and a round trip. All stay open, so that no end is measured.",
			Entries: contest.Blocking("actor", "net.Conn"), Base: "net.Conn", Columns: tripColumns,
			Bars: []measure.Bar{
				{What: "connection, against dial, accept, round trip: p50", Metric: measure.P50, Entry: "actor", Base: "net.Conn", Most: 1.5},
			},
			Serve: contest.ServeConnect, Dial: contest.DialConnect,
		},
		{
			Name: "rate", Title: "Connect and close, 64 at once, one loop on each side, blocking", On: measure.OwnCPU, Paired: true,
			Note:    "Beside it what Go's net does with as many goroutines.",
			Entries: contest.Blocking("actor", "net.Conn"), Base: "net.Conn",
			Columns: []string{measure.PerSecond, measure.ServerCPUPer, measure.ClientCPUPer, measure.AllocsPer},
			Serve:   serveRate, Dial: dialRate,
		},
		{
			Name: "loops", Title: "64 B round trips, 64 connections, 16 under way on each, blocking", On: measure.AnyCPU, Paired: true,
			Note:    "Clients have two loops at least. Where there are few CPUs both processes share them, and how many are in use says who is the limit.",
			Entries: withLoops(1, max(2, loops)), Base: withLoops(1)[0].Name(),
			Columns: []string{measure.PerSecond, measure.ServerCPUs, measure.ClientCPUs},
			Serve:   serveLoops, Dial: dialTalk,
		},
		{
			Name: "files", Title: "A file of 1 GiB from one process to the other, blocking", On: measure.OwnCPU, Paired: true,
			Note: "Both files are in memory (/dev/shm), and the copy is a new one each time. The sender reads the file into slots, and the receiver " +
				"writes the file from them. The other programs use sendfile(2), and read(2) and write(2), or splice(2), for the receiver.",
			Entries: contest.Blocking(bySlots, bySendfile, bySplice), Base: bySendfile, Columns: bulkColumns,
			Bars: []measure.Bar{
				{What: "a file through slots, against sendfile(2): throughput", Metric: measure.MiBPerS, Entry: bySlots, Base: bySendfile, Least: 0.95},
			},
			Serve: serveFiles, Dial: dialFiles,
		},
		{
			Name: "http", Title: "net/http, GET of 512 B, 64 connections and goroutines, blocking", On: measure.SameCPU, Paired: true,
			Entries: contest.Blocking("rdmanet", "net.Conn"), Base: "net.Conn",
			Columns: []string{measure.PerSecond, measure.CPUPer, measure.AllocsPer, measure.P50, measure.P99},
			Bars: measure.Bar{
				What: "net/http over %s, 64 connections, against TCP: requests per second", Metric: measure.PerSecond, Base: "net.Conn", Least: 0.95,
			}.Of("rdmanet"),
			Serve: web.Serve, Dial: web.Dial,
		},
	}
}

// withCRC returns entries of a contestant without and with CRC.
func withCRC(contestant string) []measure.Entry {
	list := contest.Blocking(contestant, contestant)
	list[1].CRC = true
	return list
}

// withLoops returns entries of actors with those numbers of loops.
func withLoops(loops ...int) (list []measure.Entry) {
	for _, n := range loops {
		list = append(list, measure.Entry{Contestant: "actor", Ours: true, Loops: n})
	}
	return list
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
