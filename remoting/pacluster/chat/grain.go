package main

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	seekFirst = 5 * time.Millisecond
	seekMost  = 100 * time.Millisecond
	// lateAfter is how long a grain may take to let the person in before it is looked for again.
	lateAfter = 2 * time.Second
	// settle is how long the answers of a grain that ended in order may take.
	settle = time.Second
)

// grain is a person's view of the directory or of the room. The person watches it. When it has
// gone, the person looks for it again, perhaps on another member, and asks to be let in again.
type grain struct {
	kind, id string
	pid      *actor.PID // nil: it is being looked for
	try      int        // counts the searches, so that late results are recognized
	fails    int        // in a row
	in       bool       // let in
	bye      goodbye
	lost     string // the lost room; "": none
	n, seen  uint64 // lines that it sent to this person, and to all
	shown    int    // lines shown
	as       string // the person's name there
	with     roster

	// Requests to the grain, which answers in order. When it has gone, limbo are those that it may
	// have answered before, because the news of its end overtakes other messages. A request that
	// comes back as a dead letter moves to back, and is repeated. One without an answer is lost.
	asked, limbo []ask
	gone         *actor.PID // the grain whose answers limbo waits for
	back         []ask
	stop         context.CancelFunc
}

// goodbye is the state of a leaving person.
type goodbye uint8

const (
	unsaid goodbye = iota
	said
	answered
)

// ask is a request of a person to a grain, made or waiting.
type ask struct {
	of     *grain
	msg    any
	token  bool // it is a typed line
	repeat bool // may be repeated
}

// The messages of a person's actor to itself, about a search.
type (
	seek search // look for the grain now
	late search // the time to let the person in is over
	over search // requests in limbo have no answer
	// the grain has gone, perhaps without receiving the goodbye
	unanswered search
	found      struct {
		search
		pid *actor.PID
	}
)

type search struct {
	g   *grain
	try int
}

// look starts a search for a grain, after a pause if the last one failed.
func (u *user) look(ctx actor.Context, g *grain) {
	g.abandon()
	g.pid, g.in = nil, false
	d := time.Duration(g.fails) * seekFirst
	g.fails++
	rdma.After(ctx, min(d, seekMost), (*seek)(&search{g, g.try}))
}

// abandon forgets all requests under way.
func (g *grain) abandon() {
	g.try++
	if g.stop != nil {
		g.stop()
		g.stop = nil
	}
}

// seek looks for a grain on a separate goroutine, because that blocks.
func (u *user) seek(ctx actor.Context, s search) {
	if s.g.try != s.try {
		return
	}
	bound, stop := context.WithCancel(context.Background())
	s.g.stop = stop
	root, self, kind, id := ctx.ActorSystem().Root, ctx.Self(), s.g.kind, s.g.id
	go func() {
		for d := seekFirst; bound.Err() == nil; d = min(2*d, seekMost) {
			if pid := u.find(kind, id); pid != nil {
				root.Send(self, &found{s, pid})
				return
			}
			select {
			case <-time.After(d):
			case <-bound.Done():
			}
		}
	}()
}

// found asks a grain to let the person in.
func (u *user) found(ctx actor.Context, m *found) {
	g := m.g
	if g.try != m.try {
		return
	}
	g.abandon()
	g.pid, g.n, g.shown = m.pid, 0, 0
	ctx.Watch(g.pid)
	if g == u.dir {
		g.asked = append(g.asked, ask{of: g, msg: &take{u.nick, u.room}})
		ctx.Request(g.pid, g.asked[0].msg)
	} else {
		ctx.Request(g.pid, &enter{u.nick, g.lost, g.seen, g.as})
	}
	rdma.After(ctx, lateAfter, (*late)(&search{g, g.try}))
}

// late looks again for a grain that did not answer: a message is lost if a queue is full.
func (u *user) late(ctx actor.Context, s search) {
	if s.g.try == s.try && !s.g.in {
		ctx.Unwatch(s.g.pid)
		s.g.asked = nil
		u.look(ctx, s.g)
	}
}

// of returns the grain with that PID, even if it has gone.
func (u *user) of(pid *actor.PID) (g *grain, gone bool) {
	for _, g := range []*grain{u.dir, u.hall} {
		switch {
		case g == nil || pid == nil:
		case g.pid != nil && g.pid.Equal(pid):
			return g, false
		case g.gone != nil && g.gone.Equal(pid):
			return g, true
		}
	}
	return nil, false
}

// lost looks again for a grain that has gone.
func (u *user) lost(ctx actor.Context, m *actor.Terminated) {
	g, gone := u.of(m.Who)
	if g == nil || gone {
		return
	}
	if g.bye == said { // its answer may be behind this
		rdma.After(ctx, byeLate, (*unanswered)(&search{g, g.try}))
		return
	}
	if g.in {
		g.lost = key(g.pid)
	}
	g.limbo, g.asked, g.gone = append(g.limbo, g.asked...), nil, g.pid
	u.look(ctx, g)
	if m.Why == actor.TerminatedReason_Stopped && len(g.limbo) > 0 {
		rdma.After(ctx, settle, (*over)(&search{g, g.try}))
		return
	}
	u.over(ctx, g)
}

// deadLetter takes back the oldest request to a grain, which had gone before it received that.
func (u *user) deadLetter(ctx actor.Context, target *actor.PID) {
	g, gone := u.of(target)
	switch {
	case g == nil:
	case gone, g.inLimbo():
		g.limbo = g.takeBack(g.limbo)
		u.settled(ctx, g)
	case g.bye == said:
		u.notLeft(ctx, g)
	case !g.in: // the request was to let the person in
		g.asked = nil
		ctx.Unwatch(g.pid)
		u.look(ctx, g)
	default:
		g.asked = g.takeBack(g.asked)
	}
}

// inLimbo reports whether the grain's present answers are to requests from before its end. It may
// have been found again with the same PID.
func (g *grain) inLimbo() bool {
	return len(g.limbo) > 0 && g.pid != nil && g.gone != nil && g.pid.Equal(g.gone)
}

// takeBack takes back the first request, unless it only was to let the person in.
func (g *grain) takeBack(asked []ask) []ask {
	if len(asked) == 0 {
		return nil
	}
	if a := asked[0]; a.token || a.repeat {
		g.back = append(g.back, a)
	}
	return asked[1:]
}

// settled continues when limbo is empty.
func (u *user) settled(ctx actor.Context, g *grain) {
	if len(g.limbo) == 0 {
		u.over(ctx, g)
	}
}

// over reports lines that a gone grain may have received, and repeats the other requests.
func (u *user) over(ctx actor.Context, g *grain) {
	lost := 0
	for _, a := range g.limbo {
		if a.repeat {
			g.back = append(g.back, a)
			continue
		}
		u.release(a)
		if a.token {
			lost++
		}
	}
	if lost > 0 {
		u.unknown(lost)
	}
	u.waiting = append(g.back, u.waiting...)
	g.limbo, g.back = nil, nil
	u.flush(ctx)
}
