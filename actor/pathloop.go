package actor

import (
	"log/slog"
	"time"

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
	messages     []*Received // free
	returns      returns     // any goroutine
	returned     func()      // Shutdown waits for the messages that owners have; nil: nobody does
}

// init makes it ready for connections.
func (l *pathLoop) init(el *eventloop.Loop, log *slog.Logger, limits *Limits) {
	l.el, l.log, l.limits = el, log, limits
	l.memoryBudget, l.lookouts = limits.Memory, make(map[keepalive]*lookout)
	l.recvBudget = newBudget(l, limits.ReceiveMemory, limits.ReceiveMemory/4, limits.ReceiveMemory/2)
	l.sendBudget = newBudget(l, limits.SendMemory, 0, limits.SendMemory)
	l.heldBudget = newBudget(l, limits.SendMemory, 0, 0)
	l.returns.l, l.sources.l = l, l
	l.shares = shares{l: l, limit: l.recvBudget.most}
}

// keepMessages is how many idle Received a loop keeps.
const keepMessages = 1024

func (l *pathLoop) newReceived() *Received {
	if n := len(l.messages); n > 0 {
		m := l.messages[n-1]
		l.messages = l.messages[:n-1]
		return m
	}
	return new(Received)
}

func (l *pathLoop) freeReceived(m *Received) {
	m.Data, m.from, m.conn, m.chunk, m.env.Sender, m.env.Message = nil, nil, nil, nil, nil, nil
	m.Since = time.Time{}
	if poisoning {
		m.refs.Store(2 * spoilt) // it is not used again: who still has it is found
		return
	}
	if len(l.messages) < keepMessages {
		l.messages = append(l.messages, m)
	}
}
