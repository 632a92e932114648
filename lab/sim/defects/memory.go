package main

import "github.com/rdmactor/rdmactor/internal/overlay"

const (
	shares  = "actor/internal/datapath/share.go"
	waiting = "iwarp/core/waiting.go"
)

// memoryDefects are those of memory that connections share.
var memoryDefects = []defect{
	{
		name: "no-receive-ends", layer: "datapath",
		was:    "A message that found no receive memory, because others had it all, ended its connection.",
		mended: "iwarp, cmidtest, actor: have what finds no memory wait at its sender, and share memory fairly",
		edits: []overlay.Edit{
			edit(waiting, "	ready = !w.paused && c.recvReady()\n	if w.paused { // perhaps by the owner when it was asked\n		return true, false\n	}\n",
				"	ready = !w.message && c.recvReady()\n"),
			edit(waiting, "	return !ready && c.cfg.SRQ != nil && c.cfg.SRQ.Waits(), ready\n", "	return false, ready\n"),
		},
		pkg: "actor", test: "TestGreedyPeers",
		workload: "connections", within: 120,
	},
	{
		name: "large-never-comes", layer: "memory",
		was:    "A large message waited for ever for memory that lay idle.",
		mended: "actor: have every large message come that was promised",
		edits: []overlay.Edit{
			edit("actor/internal/memory/arena.go", "func (a *Arena) Reclaim() {\n	for len(a.idle) > 0 {\n", "func (a *Arena) Reclaim() {\n	for a.closed && len(a.idle) > 0 {\n"),
			edit("actor/internal/memory/budget.go", "	left := b.forLarge() - b.lent(0) - want\n", "	left := b.Free - b.keep - want\n"),
		},
		pkg: "actor", test: "TestTheLargestMessageComes",
		workload: "connections", within: 160,
	},
	{
		name: "credits-behind-messages", layer: "datapath",
		was:    "Two sides that kept requests until their answers had gone stood still for good.",
		mended: "actor: read on for the credits that an owner's answers wait for",
		edits: []overlay.Edit{edit(shares,
			"c.mode == ModeMessages && (c.waits() || c.out.offering())\n", "c.mode == ModeMessages && c.out.offering()\n")},
		pkg: "actor", test: "TestCreditsBehindMessages",
		workload: "connections", within: 1900,
	},
	{
		name: "memory-of-the-gone", layer: "datapath",
		was:    "Messages that owners kept of connections that had ended took all memory, and nobody else received anything.",
		mended: "actor: leave nobody without memory for the sake of who has gone",
		edits: []overlay.Edit{
			edit(shares, "{ return s.free()-s.Owed < s.limit/16 }", "{ return false }"),
			edit(shares, "{ return max(s.limit/4, s.Owed) + s.behind() }", "{ return s.limit / 2 }"),
		},
		pkg: "actor", test: "TestCrowdOfThoseWhoHaveGone",
	},
	{
		name: "waiting-is-silence", layer: "datapath",
		was:    "A peer whose messages waited for memory was given up as silent.",
		mended: "actor, cmidtest: take nobody for lost whose messages wait, and try a thousand greedy peers",
		edits: []overlay.Edit{edit("actor/internal/datapath/keepalive.go",
			"qp != nil && qp.Waiting() && c.goodbye == goodbyeUnsaid {", "qp != nil && qp.Waiting() && c.Over() {")},
		pkg: "actor", test: "TestWaitingIsNoSilence",
		workload: "connections", within: 100,
	},
}
