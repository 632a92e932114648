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
	limits pathLimits
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

// pathLimits bound what it makes the loop hold, in bytes but for Queue.
type pathLimits struct {
	Receive int // of what is received
	Send    int // of what is sent
	Memory  int // for one-sided operations
	Queue   int // messages that wait, per connection
}

// init makes it ready for connections.
func (l *pathLoop) init(el *eventloop.Loop, log *slog.Logger, limits pathLimits) {
	l.el, l.log, l.limits = el, log, limits
	l.memoryBudget, l.lookouts = limits.Memory, make(map[keepalive]*lookout)
	l.recvBudget = newBudget(l, limits.Receive, limits.Receive/4, limits.Receive/2)
	l.sendBudget = newBudget(l, limits.Send, 0, limits.Send)
	l.heldBudget = newBudget(l, limits.Send, 0, 0)
	l.sources.l = l
	l.shares = shares{l: l, limit: l.recvBudget.most}
}

// held counts the messages that owners have and have not given back.
func (l *pathLoop) held() (n int) {
	for _, d := range l.devices {
		n += d.held()
	}
	return n
}

// full reports whether a further connection's messages would take the memory of those there are.
func (l *pathLoop) full() bool { return l.shares.full() }

// crowdedFor reports whether there are so many connections that one with receives of n bytes would be
// too much.
func (l *pathLoop) crowdedFor(n int) bool { return l.shares.crowded() && n > eagerCrowded }

// close frees what connections share.
func (l *pathLoop) close() {
	for _, d := range l.devices {
		d.close()
	}
	l.devices = nil
}
