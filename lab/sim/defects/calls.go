package main

import "github.com/rdmactor/rdmactor/internal/overlay"

// rpcDefects are those of calls.
var rpcDefects = []defect{
	{
		name: "expired-requests", layer: "rpc",
		was:    "Handlers were called for requests whose callers had given up long before.",
		mended: "rpc: send and handle no request that nobody waits for any more",
		edits: []overlay.Edit{
			edit("rpc/link.go", "	l.out.sys, l.out.trim, l.out.trimLate = l.sys, l.trimLocked, l.trimLate\n", "	l.out.sys = l.sys\n"),
			edit("rpc/request.go", "	var h wire.Header\n	n := wire.RequestLen(metadata, body)\n",
				"	var h wire.Header\n	if !c.deadline.IsZero() {\n		h.Arg, h.Flags = wire.PutTimeout(max(time.Until(c.deadline), 1))\n	}\n"+
					"	n := wire.RequestLen(metadata, body)\n"),
			edit("rpc/request.go", "	if l.slots[i].number > l.out.handed {", "	if l.slots[i].number > l.out.handed && l.out.trim != nil {"),
			edit("rpc/servercall.go", "call.c.arrival().Add(t)", "time.Now().Add(t)"),
			edit("rpc/servercall.go", "import (\n	\"context\"\n	\"fmt\"\n", "import (\n	\"context\"\n	\"fmt\"\n	\"time\"\n"),
		},
		pkg: "rpc", test: "TestTimeInTheClientIsSubtracted|TestRequestsGivenUpAreNotSent",
	},
	{
		name: "unsent-after-stop", layer: "rpc",
		was:    "Calls whose handlers were running were called \"not sent\" when the connection's actor was stopped.",
		mended: "rpc: call nothing unsent whose connection's actor was stopped",
		edits:  []overlay.Edit{edit("rpc/link.go", "		l.unsure = true // nobody has said what has arrived\n", "")},
		pkg:    "rpc", test: "TestStoppedConnectionIsUnsure",
		workload: "calls", within: 150,
	},
	{
		name: "drain-drops", layer: "rpc",
		was:    "A request that crossed the end of a drain was lost with a fate that forbids repeating it.",
		mended: "rpc: lose no requests behind large answers, nor in a drain",
		edits: []overlay.Edit{edit("rpc/link.go",
			"		if h.Flags&wire.FlagLast != 0 {\n			return l.refusedLocked(), nil\n		}\n", "")},
		pkg: "rpc", test: "TestCallCrossesTheEndOfADrain|TestLastDrainRefusesWhatIsUnanswered",
		workload: "calls", within: 200,
	},
	{
		name: "item-behind-the-end", layer: "rpc",
		was:    "An item that was sent while its stream's handler returned failed all calls of the connection.",
		mended: "rpc: read large messages in turns, and keep no connection for nobody",
		edits: []overlay.Edit{edit("rpc/sender.go",
			"	case c.calls[call.id.Slot()] != call:\n", "	case c.calls[call.id.Slot()] == nil && c.ending:\n")},
		pkg: "rpc", test: "TestSenderOutlivesItsHandler",
		workload: "calls", within: 150,
	},
	{
		name: "runtime-first", layer: "rpc",
		was:    "Close and Dial of a Client hung when its Runtime was shut down first.",
		mended: "rpc: end a Client's waits when its Runtime has been shut down",
		edits: []overlay.Edit{edit("rpc/link.go",
			"{ l.sys.Root.RequestWithCustomSender(l.out.pid, m, l.dead.pid) }", "{ l.sys.Root.Send(l.out.pid, m) }")},
		pkg: "rpc", test: "TestAfterShutdown",
		workload: "lives", within: 20,
	},
	{
		name: "places", layer: "rpc",
		was:    "A few clients with idle streams had every place of a server, and all others were refused.",
		mended: "rpc: share places out by address and by connection",
		edits: []overlay.Edit{
			edit("rpc/internal/share/share.go", "	case c.used[r]+n > a.each[r], !fair(p.used[r], n, left, a.total[r], k):\n		return false\n	case p.used[r] == 0:\n		return true\n	}\n",
				"	case c.used[r]+n > a.each[r]:\n		return false\n	case k > 0:\n		return n <= left\n	}\n"),
		},
		pkg: "rpc", test: "TestIdleStreamsStarveNobody",
	},
}
