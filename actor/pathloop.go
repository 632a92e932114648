package actor

import (
	"log/slog"

	"github.com/rdmactor/rdmactor/eventloop"
)

// pathLoop is what the connections of one loop share: devices with their queues, and the memory for
// what is sent and received, with who waits for it. Loop goroutine.
type pathLoop struct {
	el     *eventloop.Loop
	log    *slog.Logger
	limits *Limits
	// observed: somebody wants to know of each change of a connection's counts.
	observed bool

	devices    []*device
	recvBudget budget // of what is received into
	shares     shares // of that
	sendBudget budget // of what messages are sent from at once
	heldBudget budget // of what peers read messages from
	sources    sources

	memoryBudget int // bytes for one-sided operations that may still be registered
	lookouts     map[keepalive]*lookout
	idle         []*inbound
	makeInbound  func() *inbound // makes one with what it is part of
}

// init makes it ready for connections.
func (l *pathLoop) init(el *eventloop.Loop, log *slog.Logger, limits *Limits) {
	l.el, l.log, l.limits = el, log, limits
	l.memoryBudget, l.lookouts = limits.Memory, make(map[keepalive]*lookout)
	l.recvBudget = newBudget(l, limits.ReceiveMemory, limits.ReceiveMemory/4, limits.ReceiveMemory/2)
	l.sendBudget = newBudget(l, limits.SendMemory, 0, limits.SendMemory)
	l.heldBudget = newBudget(l, limits.SendMemory, 0, 0)
	l.sources.l = l
	l.shares = shares{l: l, limit: l.recvBudget.most}
}
