package main

import "github.com/rdmactor/rdmactor/internal/overlay"

// iwarpDefects are those of the embedded device.
var iwarpDefects = []defect{
	{
		name: "setup-unread", layer: "iwarp",
		was:    "A peer was given up as silent in the set-up, although its part waited unread on a busy loop.",
		mended: "iwarp: read what has come before giving a peer's set-up up",
		edits: []overlay.Edit{
			edit("iwarp/core/timeout.go", "		return !c.phaseAt.IsZero() && !now.Before(c.phaseAt)\n	case stIdle", "		return false\n	case stIdle"),
			edit("iwarp/conn_linux.go", "		if c.connected(now); c.phase == phConnecting {\n", "		if c.phase == phConnecting {\n"),
		},
		pkg: "iwarp", test: "TestSetupOnABusyLoop", workload: "connections", within: 1400,
	},
	{
		name: "first-connection-stays", layer: "iwarp",
		was:    "The second attempt from a bound port failed with EADDRNOTAVAIL on any network but loopback.",
		mended: "iwarp: reset the first connection before the second attempt from its port",
		edits: []overlay.Edit{edit("iwarp/connect_linux.go",
			"	_ = c.in.sys.SetLinger(c.fd, &unix.Linger{Onoff: 1})\n", "")},
		pkg: "iwarp", test: "TestFallbackFromAPort", workload: "connections", within: 160,
	},
	{
		name: "revision-1-reads", layer: "iwarp",
		was:    "The first large message after a fallback to MPA revision 1 ended the connection.",
		mended: "iwarp, actor: serve Reads in MPA revision 1, and tell of the fallback to it",
		edits: []overlay.Edit{
			edit("iwarp/core/setup.go", "	} else {\n		ird = max(ird, UnagreedIRD)\n	}\n", "	}\n"),
			edit("iwarp/listen_linux.go", "	if r.Enhanced {\n		c.asked =", "	if r.Enhanced || !r.Enhanced {\n		c.asked ="),
		},
		pkg: "actor", test: "TestFallbackLargeMessages", workload: "connections", within: 500,
	},
	{
		name: "reads-hold-the-end", layer: "iwarp/core",
		was:    "A peer that always had a Read outstanding kept a connection that was being closed.",
		mended: "iwarp/core: reach memory across 4 GiB, and have Shutdown end despite Reads",
		edits: []overlay.Edit{edit("iwarp/core/memory.go",
			"	r.readMSN++\n	if c.state == stFinishing {\n		return\n	}\n", "	r.readMSN++\n")},
		pkg: "iwarp/core", test: "TestDisconnectDespiteReads",
	},
	{
		name: "answer-to-a-flushed-read", layer: "iwarp/core",
		was:    "A Read's answer that crossed Disconnect made a protocol error of an orderly end, and messages behind it were lost.",
		mended: "iwarp/core: throw away what answers a Read that Disconnect has flushed",
		edits:  []overlay.Edit{edit("iwarp/core/rx.go", "	r.orphans += int32(n)\n", "")},
		pkg:    "iwarp/core", test: "TestDisconnectWithReads",
	},
	{
		name: "longer-segment", layer: "iwarp/core",
		was:    "A segment that was longer than the one before it arrived with wrong bytes.",
		mended: "iwarp, eventloop: mend what a review found in landings and glances",
		edits:  []overlay.Edit{edit("iwarp/core/landing.go", "		case i%2 == 1 && c.rx.phase != phPayload:", "		case i%2 == 1:")},
		pkg:    "iwarp/core", test: "TestLongerSegment",
	},
}
