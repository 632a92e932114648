package main

import "github.com/rdmactor/rdmactor/internal/overlay"

// aboveDefects are those of streams of bytes and of what keeps connections.
var aboveDefects = []defect{
	{
		name: "closed-reader-swallows", layer: "rdmanet",
		was:    "Who wrote to a side that had closed went on for 30 s, and nobody read it.",
		mended: "rdmanet: reset a connection whose closed side is sent data, as TCP does",
		edits: []overlay.Edit{
			edit("rdmanet/close.go", "	over := c.wr.closed || c.wr.fin\n", "	over := false\n"),
			edit("rdmanet/close.go", "	if unread || c.wr.linger <= 0 {\n", "	if c.wr.linger <= 0 {\n"),
			edit("rdmanet/close.go", "	unread, ok := c.close()\n", "	_, ok := c.close()\n"),
		},
		pkg: "rdmanet", test: "TestTwinDataBehindCloseResets",
		workload: "streams", within: 100,
	},
	{
		name: "writeto-loses", layer: "rdmanet",
		was:    "WriteTo lost what its Writer had not taken of small messages.",
		mended: "rdmanet: have WriteTo leave what its Writer did not take",
		edits: []overlay.Edit{edit("rdmanet/read.go", "	defer func() { r.giveBack(n) }()\n",
			"	defer func() {\n		if r.small != nil {\n			r.giveBack(len(rest))\n			return\n		}\n		r.giveBack(n)\n	}()\n")},
		pkg: "rdmanet", test: "TestWriteToStopsAtTheWritersError|TestWriteToSurvivesItsWriter",
		workload: "streams", within: 50,
	},
	{
		name: "drops-what-is-not-reported", layer: "remoting",
		was:    "What slow subscribers were not notified of was gone with its peer.",
		mended: "remoting: say what subscribers were not notified of, and count what is unknown",
		edits: []overlay.Edit{edit("remoting/report.go",
			"	if n := r.p.unreported.Load(); n != r.gap {\n", "	if n := r.p.unreported.Load(); n == ^r.gap {\n")},
		pkg: "remoting", test: "TestUnreported",
		workload: "remote", within: 4000,
	},
	{
		name: "turn-not-used", layer: "reconnect",
		was:    "One whose loop stood still had all other dials of the runtime wait.",
		mended: "reconnect: let those behind it pass who does not come for its turn",
		edits: []overlay.Edit{
			edit("actor/reconnect/limiter.go", "			return false, first.since.Add(patience).Sub(now)\n", "			return false, 0\n"),
			edit("actor/reconnect/limiter.go", "		case !l.roomLocked(k) || !k.since.IsZero() && now.Sub(k.since) >= patience:\n", "		case !l.roomLocked(k):\n"),
			edit("actor/reconnect/limiter.go", "		if woken == 2 {\n", "		if woken == 1 {\n"),
		},
		pkg: "actor/reconnect", test: "TestFirstInTheLineDoesNotCome",
	},
	{
		name: "outlives-its-runtime", layer: "reconnect",
		was:    "The owner of a reconnecting actor got no Closed when the Runtime was shut down.",
		mended: "actor/reconnect: end with the runtime",
		edits: []overlay.Edit{edit("actor/reconnect/link.go",
			"	case errors.Is(m.Err, rdma.ErrShutdown): // also if it is an earlier identifier\n", "	case current && l.state == LinkEnded && errors.Is(m.Err, rdma.ErrShutdown):\n")},
		pkg: "actor/reconnect", test: "TestShutdown",
		workload: "lives", within: 50,
	},
}
