package datapath

import (
	"log/slog"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Loop is what the connections of one loop share: devices with their queues, and the memory for
// what is sent and received, with who waits for it. Loop goroutine.
type Loop struct {
	el     *eventloop.Loop
	log    *slog.Logger
	limits Limits
	// observed: somebody wants to know of each change of a connection's counts.
	Observed bool

	Devices    []*Device
	RecvBudget budget // of what is received into
	Shares     shares // of that
	SendBudget budget // of what messages are sent from at once
	HeldBudget budget // of what peers read messages from
	Sources    sources

	MemoryBudget int // bytes for one-sided operations that may still be registered
	Lookouts     map[Keepalive]*Lookout
	idle         []*Inbound
	NewInbound   func() *Inbound // makes one with what it is part of
}

// Limits bound what it makes the loop hold, in bytes but for Queue.
type Limits struct {
	Receive int // of what is received
	Send    int // of what is sent
	Memory  int // for one-sided operations
	Queue   int // messages that wait, per connection
}

// Init makes it ready for connections.
func (l *Loop) Init(el *eventloop.Loop, log *slog.Logger, limits Limits) {
	l.el, l.log, l.limits = el, log, limits
	l.MemoryBudget, l.Lookouts = limits.Memory, make(map[Keepalive]*Lookout)
	l.RecvBudget = newBudget(l, limits.Receive, limits.Receive/4, limits.Receive/2)
	l.SendBudget = newBudget(l, limits.Send, 0, limits.Send)
	l.HeldBudget = newBudget(l, limits.Send, 0, 0)
	l.Sources.l = l
	l.Shares = shares{l: l, limit: l.RecvBudget.most}
}

// Held counts the messages that owners have and have not given back.
func (l *Loop) Held() (n int) {
	for _, d := range l.Devices {
		n += d.held()
	}
	return n
}

// Full reports whether a further connection's messages would take the memory of those there are.
func (l *Loop) Full() bool { return l.Shares.full() }

// CrowdedFor reports whether there are so many connections that one with receives of n bytes would be
// too much.
func (l *Loop) CrowdedFor(n int) bool { return l.Shares.crowded() && n > eagerCrowded }

// Close frees what connections share.
func (l *Loop) Close() {
	for _, d := range l.Devices {
		d.close()
	}
	l.Devices = nil
}
