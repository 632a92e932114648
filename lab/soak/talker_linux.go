package main

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

const (
	// undecided is the maximum number of messages without a known fate. It is more than the
	// credits, because fates are reported with acknowledgements and in bursts.
	undecided = 64
	// drained is the number of acknowledgements after which a connection is ended in order.
	drained = 1000
)

// talker owns a reconnecting actor, and tracks the fate of each message, which must be exactly one.
// A third of the messages is idempotent.
type talker struct {
	w        *worker
	work     string
	pause    time.Duration
	most     int // bytes of a message
	pid      *actor.PID
	link     *actor.PID
	open     map[uint64]bool // by tag: is it idempotent?
	tag      uint64          // the last
	acked    uint64          // last acknowledged one on this connection
	count    int
	draining bool
	closing  bool
	closed   chan struct{}
}

// hangUp asks a talker to end its work, and another to send a message.
type (
	hangUp  struct{}
	another struct{}
)

func (w *worker) talk(work string, pause time.Duration, most int) *talker {
	t := &talker{w: w, work: work, pause: pause, most: most, open: make(map[uint64]bool), closed: make(chan struct{})}
	t.pid = w.system.Root.Spawn(actor.PropsFromFunc(t.receive, w.rt.OnLoop()))
	return t
}

func (t *talker) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		t.spawnLink(ctx)
		rdma.After(ctx, 0, another{})
	case another:
		t.sendNext(ctx)
	case *reconnect.Up:
		t.acked = 0
	case *rdma.Received:
		t.handleAck(ctx, m)
	case *reconnect.Settled:
		t.handleFates(m.Fates)
	case *reconnect.Down:
		t.handleFates(m.Fates)
		if m.Err != nil && m.WasUp {
			t.w.countWork(t.work, m.Err)
		}
	case *reconnect.Refused:
		t.w.recordFault("%s: message %d: %v", t.work, m.Tag, m)
	case *reconnect.Closed:
		t.handleClosed(ctx, m)
	case hangUp:
		t.closing = true
		t.drainLink(ctx)
	}
}

func (t *talker) spawnLink(ctx actor.Context) {
	t.draining = false
	t.link = reconnect.Spawn(t.w.rt, ctx.Self(), reconnect.Config{
		Dial: rdma.Dial{Addr: t.w.server.Messages, Timeout: t.w.scale.Connect},
		ID:   rdma.IDConfig{MaxMessage: maxMessage}, Backoff: backoff,
	})
}

func (t *talker) sendNext(ctx actor.Context) {
	if t.closing {
		return
	}
	rdma.After(ctx, rand.N(2*t.pause), another{})
	if t.draining || len(t.open) >= undecided {
		return
	}
	t.tag++
	s := reconnect.NewSend(t.tag, payload(t.tag, rand.N(t.most)))
	s.Idempotent = t.tag%3 == 0
	t.open[t.tag] = s.Idempotent
	ctx.Send(t.link, s)
}

func (t *talker) handleAck(ctx actor.Context, m *rdma.Received) {
	n := binary.BigEndian.Uint64(m.Data) // it is the message's head
	if n <= t.acked || n > t.tag {
		t.w.recordFault("%s: the acknowledgement of message %d comes behind that of %d, on one connection", t.work, n, t.acked)
	}
	t.acked = n
	t.w.countWork(t.work, nil)
	if t.count++; t.count%drained == 0 {
		t.drainLink(ctx)
	}
}

// drainLink ends the link in order.
func (t *talker) drainLink(ctx actor.Context) {
	if !t.draining {
		t.draining = true
		ctx.Send(t.link, &reconnect.Drain{Timeout: patience})
	}
}

// handleFates handles reported fates of messages.
func (t *talker) handleFates(all []reconnect.Fate) {
	for _, f := range all {
		idempotent, open := t.open[f.Tag]
		switch {
		case !open:
			t.w.recordFault("%s: message %d has two fates: %+v", t.work, f.Tag, f)
		case f.Again && f.Outcome == reconnect.Unknown && !idempotent:
			t.w.recordFault("%s: message %d may have arrived, and is sent again: %+v", t.work, f.Tag, f)
		case !f.Again:
			delete(t.open, f.Tag)
		}
	}
}

// handleClosed handles the end of a link.
func (t *talker) handleClosed(ctx actor.Context, m *reconnect.Closed) {
	t.handleFates(m.Fates)
	if len(t.open) > 0 {
		t.w.recordFault("%s: %d messages have no fate at the end (%v)", t.work, len(t.open), m.Err)
		clear(t.open)
	}
	if t.closing {
		close(t.closed)
		ctx.Stop(ctx.Self())
		return
	}
	if !t.draining {
		t.w.recordFault("%s: the reconnecting actor has ended: %v", t.work, m.Err)
	}
	t.spawnLink(ctx)
}

// closeAndWait ends the talker's work.
func (t *talker) closeAndWait() {
	t.w.system.Root.Send(t.pid, hangUp{})
	select {
	case <-t.closed:
	case <-time.After(2 * grace):
		t.w.recordFault("%s do not end", t.work)
	}
}
