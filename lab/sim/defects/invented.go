package main

import "github.com/rdmactor/rdmactor/internal/overlay"

// invention is the layer of what was invented.
const invention = "invented"

// invented are defects that this project never had. Each breaks one thing that is promised, and
// shows that an oracle looks at it. No test was added for them, because nothing was mended.
var invented = []defect{
	{
		name: "no-command-deadline", layer: invention, workload: "connections", within: 600,
		was: "A command that a device does not answer waits for ever.",
		edits: []overlay.Edit{edit("actor/timer.go",
			"		a.due = it.l.el.Now().Add(it.phase(a.cmd))\n", "		a.due = it.l.el.Now().Add(it.phase(a.cmd) + 24*time.Hour)\n")},
	},
	{
		name: "no-close-deadline", layer: invention, workload: "connections", within: 150,
		was: "A Close waits for its peer for ever.",
		edits: []overlay.Edit{edit("actor/disconnect.go",
			"positive(c.Timeout, it.rt.cfg.Timeouts.Close)),\n", "positive(c.Timeout, it.rt.cfg.Timeouts.Close) + 24*3600e9),\n")},
	},
	{
		name: "no-floor", layer: invention, workload: "connections", within: 2300,
		was: "A connection whose owner has none of its messages waits for memory that others have.",
		edits: []overlay.Edit{
			edit(shares, "	case r.bytes == 0:\n		return math.MinInt, true\n", ""),
			edit(shares, "	\"errors\"\n	\"math\"\n", "	\"errors\"\n"),
		},
	},
	{
		name: "no-writable", layer: invention, workload: "connections", within: 20,
		was:   "Who waits for room in a full queue never learns of it.",
		edits: []overlay.Edit{edit("actor/internal/datapath/sending.go", "		c.full = false\n		c.up.Writable()\n", "		c.full = false\n")},
	},
	{
		name: "retained-reused", layer: invention, workload: "connections", within: 40,
		was: "A retained message's memory is used for another one.",
		edits: []overlay.Edit{
			edit("actor/release.go", "	m.keep()\n	return m\n", "	return m\n"),
			edit("actor/release.go", "	if m.in.Conn == nil {\n		return\n	}\n	switch n := m.refs.Add(-1); {", "	if m.in.Conn == nil || m != nil {\n		return\n	}\n	switch n := m.refs.Add(-1); {"),
		},
	},
	{
		name: "write-without-right", layer: invention, workload: "connections", within: 1500,
		was: "A peer writes to memory that it may only read.",
		edits: []overlay.Edit{
			edit("iwarp/core/memory.go", "	case mr.Access&right == 0:\n", "	case mr.Access&right == 0 && right != verbs.RemoteWrite:\n"),
			edit("cmid/cmidtest/internal/memory/memory.go", "	if r.mr.Access&access == 0 {\n", "	if r.mr.Access&access == 0 && access != verbs.RemoteWrite {\n"),
		},
	},
	{
		name: "write-off-by-one", layer: invention, workload: "connections", within: 700,
		was: "A Write begins a byte too early.",
		edits: []overlay.Edit{edit("iwarp/core/memory.go",
			"	r.mr, r.dst = mr, mr.Bytes[off:off+r.seg:off+r.seg]\n",
			"	if off > 0 {\n		off--\n	}\n	r.mr, r.dst = mr, mr.Bytes[off:off+r.seg:off+r.seg]\n")},
	},
	{
		name: "listener-leaks", layer: invention, workload: "connections", within: 20,
		was:   "A listener that is closed leaves its descriptor.",
		edits: []overlay.Edit{edit("iwarp/listen_linux.go", "	if !l.lost {\n		l.id.in.closeFD(l.fd)\n	}\n", "")},
	},
	{
		name: "no-keepalive", layer: invention, workload: "connections", within: 700,
		was:   "A peer that is gone without a word is never given up.",
		edits: []overlay.Edit{edit("actor/internal/datapath/keepalive.go", "				c.lookAfter()\n", "				_ = c.lookAfter\n")},
	},
	{
		name: "slot-twice", layer: invention, workload: "slots", within: 20,
		was:   "A slot is free when the device is finished with it, although the peer has not released it, and again when it has.",
		edits: []overlay.Edit{edit("slots/sending.go", "err == nil && !o.theirs && o.freeLocked()", "err == nil && o.freeLocked()")},
	},
	{
		name: "admit-counts-on", layer: invention, workload: "remote", within: 20,
		was:   "A call of Admit that has returned goes on counting, and at last a node admits nobody.",
		edits: []overlay.Edit{edit("remoting/admit.go", "		defer func() {\n			h.asking.Add(-1)\n", "		defer func() {\n")},
	},
}
