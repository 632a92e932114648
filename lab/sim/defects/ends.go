package main

import "github.com/rdmactor/rdmactor/internal/overlay"

// endDefects are those of how identifiers, connections and runtimes end.
var endDefects = []defect{
	{
		name: "end-twice", layer: "actor",
		was:    "The end of a connection was reported twice, if both sides of the actor noticed it.",
		mended: "actor: decide and tell the end of a connection in one place",
		edits: []overlay.Edit{
			edit("actor/disconnect.go", "	silent := it.endReported && (!removal || !it.cfg.Manual)\n", "	silent := false\n"),
			edit("actor/disconnect.go", "	if it.ending() || it.endReported {\n		return\n	}\n	if it.unheard()", "	if it.ending() {\n		return\n	}\n	if it.unheard()"),
		},
		pkg: "actor", test: "TestOneEndIsReported",
	},
	{
		name: "no-goodbye", layer: "actor",
		was:    "A process that was killed seemed to have closed its connections in order.",
		mended: "actor: say goodbye, and tell an end without one for what it is",
		edits: []overlay.Edit{edit("actor/internal/datapath/ending.go",
			"		if err == nil {\n			err = unix.ECONNRESET\n		}\n		return &LostError{err}\n", "		return err\n")},
		pkg: "actor", test: "TestEndWithoutGoodbye",
		workload: "connections", within: 40,
	},
	{
		name: "silent-peer", layer: "actor",
		was:    "Nobody noticed that a peer was frozen, or its machine gone, while nobody sent.",
		mended: "actor: probe a silent peer, and give it up",
		edits: []overlay.Edit{edit("actor/internal/datapath/keepalive.go",
			"k.idle != 0 && c.Session.Courteous()", "k.idle < 0")},
		pkg: "actor", test: "TestSilentPeers",
		workload: "connections", within: 1000,
	},
	{
		name: "talkers", layer: "actor",
		was:    "Shutdown did not return while two OnLoop actors answered each other.",
		mended: "actor: end a runtime whose actors talk for ever",
		edits: []overlay.Edit{edit("actor/internal/mailbox/ending.go",
			"	l.closing.Store(true)\n	for _, m := range r.on(l) {\n		m.Pass(lastCall{})\n	}\n", "")},
		pkg: "actor", test: "TestShutdownWhileActorsTalk",
		workload: "lives", within: 20,
	},
	{
		name: "crossed-request", layer: "actor",
		was:    "Shutdown waited for the peer of a connection that was requested as it began.",
		mended: "actor: end Shutdown although a request comes as it begins",
		edits: []overlay.Edit{
			edit("actor/create.go", "			it.box.PostUserMessage(&shutdownAsked{})\n", "			return\n"),
			edit("actor/request.go", "	if from.ending() || l.rt.closing.Load() {\n", "	if from.ending() {\n"),
			edit("actor/request.go", "	l.ids[it] = struct{}{} // Shutdown may look before Started\n", ""),
			edit("actor/request.go", "	closing := l.rt.closing.Load()\n", "	closing := false\n"),
		},
		pkg: "actor", test: "TestShutdownMeetsARequest|TestRequestAfterShutdownBegan",
	},
	{
		name: "ask-leaks", layer: "actor",
		was:    "When the context of Ask ended as the answer came, a connection stayed that nobody knew of.",
		mended: "actor: leave nothing of an Ask whose context ends with the answer",
		edits: []overlay.Edit{edit("actor/receive.go",
			"	case *cancelled:\n		it.destroy(m.cause)\n", "	case *cancelled:\n		if len(it.asked) > 0 {\n			it.destroy(m.cause)\n		}\n")},
		pkg: "actor", test: "TestAskWhoseContextEndsWithTheAnswer",
	},
	{
		name: "ghost-at-the-limit", layer: "actor",
		was:    "Who made an identifier on Closed was refused at Limits.Connections because of the one that had gone.",
		mended: "actor: count an identifier no more before Closed is told",
		edits: []overlay.Edit{
			edit("actor/destroy.go", "	it.uncount() // first: who gets Closed may want another identifier in its place\n", ""),
			edit("actor/destroy.go", "func() { it.l.forget(it) }, // Shutdown", "func() { it.uncount(); it.l.forget(it) }, // Shutdown"),
		},
		pkg: "actor", test: "TestClosedMakesRoom",
		workload: "lives", within: 150,
	},
	{
		name: "late-accept", layer: "actor",
		was:    "An Accept that came too late left an identifier behind, for each impatient peer.",
		mended: "actor: destroy an identifier whose Accept came too late",
		edits: []overlay.Edit{edit("actor/do.go",
			"it.id.State() == states.Failed && !it.cfg.Manual {", "it.id.State() == states.Failed && it.ending() {")},
		pkg: "actor", test: "TestAcceptAfterThePeerHasGone",
		workload: "connections", within: 100,
	},
}
