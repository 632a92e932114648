package main

import "github.com/rdmactor/rdmactor/internal/overlay"

// actorDefects are those of commands, answers and mailboxes.
var actorDefects = []defect{
	{
		name: "commands-overtake", layer: "mailbox",
		was:    "Where the mailbox was full, a command overtook the Sends before it.",
		mended: "actor: bound the mailbox, and keep its order when it is full",
		edits: []overlay.Edit{edit("actor/overflow.go",
			"		admit = over <= commandRoom || ends(m) && over <= 2*commandRoom\n", "		it.box.Post(mailbox.Control, msg)\n		return false\n")},
		pkg: "actor", test: "TestCloseInAFullMailbox|TestCancelStaysBehindItsCommand|TestFloodOfAnything",
		workload: "connections", within: 150,
	},
	{
		name: "connect-twice", layer: "actor",
		was:    "Of two senders of one Connect the first got the second's refusal, and the second no answer.",
		mended: "actor: answer each who has sent one Connect, when it was sent twice",
		edits:  []overlay.Edit{edit("actor/do.go", "slices.Backward(it.asked)", "slices.All(it.asked)")},
		pkg:    "actor", test: "TestOneConnectSentTwice",
		workload: "lives", within: 150,
	},
	{
		name: "dead-owner", layer: "actor",
		was:    "Where the mailbox of an identifier was full whose owner was dead, the program's stack overflowed.",
		mended: "actor: drop dead letters that find a full mailbox",
		edits: []overlay.Edit{edit("actor/overflow.go",
			"	case actor.MessageBatch, Event, *actor.DeadLetterResponse:", "	case actor.MessageBatch, Event:")},
		pkg: "actor", test: "TestFullMailboxOfADeadOwner",
	},
	{
		name: "memory-of-the-first-address", layer: "actor",
		was:    "A command that named memory of an address that Dial had given up ended the identifier in a panic.",
		mended: "actor: keep memory with the connection it was made for",
		edits: []overlay.Edit{edit("actor/memorycommands.go",
			"	case m.home != it.home || m.gone() || it.conn != nil && it.conn.Over():\n", "	case it.conn != nil && it.conn.Over():\n")},
		pkg: "actor", test: "TestMemoryOfAnAddressTriedBefore",
	},
}
