package workload

import (
	"bytes"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/states"
)

// connOwner is an actor that owns connections.
type connOwner struct {
	h       *connHost
	p       *world.Process // process in which it runs
	name    string
	kind    ownerKind
	handler bool
	pid     *actor.PID
	ids     []string // of all its identifiers
	ends    []*connEnd
	former  []*connEnd // handed over to another
	kept    []*kept
	away    func() // does not return; called on the next message
	stopped *time.Duration
}

// kept is a message that is retained.
type kept struct {
	e      *connEnd
	m      *rdma.Received
	data   []byte // of m
	number uint64
	over   bool
	passed bool // another actor releases it
}

// Messages of the workload to owners.
type (
	// connDo calls a function in Receive.
	connDo struct{ do func(ctx actor.Context) }
	// connFree releases a retained message.
	connFree struct{ k *kept }
	// connGo continues a pump.
	connGo struct{ e *connEnd }
)

// ownerOfKind returns an owner of a kind.
func (h *connHost) ownerOfKind(kind ownerKind) *connOwner {
	shared := kind == sharedLoop || kind == sharedOff
	if o := h.shared[kind]; shared && o != nil && o.stopped == nil {
		return o
	}
	o := h.newOwner("owner").(*connOwner)
	o.kind, o.handler = kind, false
	place := h.rt.OnLoop()
	if kind == ownOff || kind == sharedOff {
		place = h.rt.OffLoop()
	}
	o.pid, _ = h.root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return o }, place), o.name)
	if shared {
		h.shared[kind] = o
	}
	return o
}

func (h *connHost) newOwner(kind string) actor.Actor {
	o := &connOwner{h: h, p: h.p, name: h.newName(kind), handler: true, kind: ownHandler}
	h.owners = append(h.owners, o)
	return o
}

// mayBlock reports whether the owner may block.
func (o *connOwner) mayBlock() bool { return o.kind == ownOff || o.kind == sharedOff }

// Receive implements actor.Actor.
func (o *connOwner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		o.pid = ctx.Self()
		return
	case *actor.Stopping:
		o.releaseKept()
		return
	case *connFree:
		m.k.releaseMessage()
		return
	case *connHoard:
		for _, k := range m.e.hoarded {
			k.releaseMessage()
		}
		return
	}
	if o.p != o.h.p {
		return // killed: it continues only for its shutdown, when the world ends
	}
	switch m := ctx.Message().(type) {
	case *connDo:
		m.do(ctx)
	case *connGo:
		m.e.pumpOn(ctx)
	case *rdma.ConnectRequest:
		o.handleRequest(ctx, m)
	case *actor.DeadLetterResponse:
		if e := o.h.ends[m.Target.GetId()]; e != nil {
			e.recordFate("owner", m)
		}
	case rdma.Event:
		o.handleEvent(ctx, m)
	}
}

// releaseKept releases all retained messages.
func (o *connOwner) releaseKept() {
	now := o.h.w.now()
	o.stopped = &now
	for _, k := range o.kept {
		if !k.passed {
			k.releaseMessage()
		}
	}
	o.kept = nil
	if o.p != o.h.p {
		return
	}
	for _, id := range o.ids {
		o.h.w.ids.Orphan(id)
	}
	for _, e := range o.former { // they still report on what this owner has sent
		e.out.Mute("owner")
		if len(e.c.behaved) > 0 {
			e.c.behaved[e.side].Excuse()
		}
	}
	for _, e := range o.ends {
		e.out.Mute("owner")
		if e.dial != nil {
			o.h.w.ids.Answered(now, e.dial, "its asker has stopped")
			e.dial = nil
		}
	}
}

// handleEvent handles a report of an identifier to its owner.
func (o *connOwner) handleEvent(ctx actor.Context, ev rdma.Event) {
	from := ctx.Sender()
	o.h.w.ids.Heard(o.h.w.now(), o.name, o.keyOf(from), ev.Kind())
	e := o.h.ends[from.GetId()]
	if e == nil {
		return // a listener
	}
	switch m := ev.(type) {
	case *rdma.Received:
		o.handleReceived(ctx, e, m)
	case *rdma.Sent, *rdma.SendFailed:
		e.recordFate("owner", m)
	case *rdma.Writable:
		if e.pumping != nil {
			e.pumping.full = false
			e.pumpOn(ctx)
		}
	case *rdma.Disconnected, *rdma.DeviceRemoval:
		if e.manual { // nothing else destroys it
			destroy := func(actor.Context) { o.h.sendCommand(e.id, &rdma.DestroyID{}, nil) }
			rdma.After(ctx, e.c.spec.sides[0].keep, &connDo{destroy})
		}
	case *rdma.Closed: // a late owner may learn of a request that is already gone
		e.closed, e.ended = true, true
	case *rdma.Established:
		e.dialAnswered(ev.Kind())
	case rdma.Failure:
		if e.dialled != nil && m.Failed() == rdma.Command(e.dialled) {
			e.dialAnswered(ev.Kind())
		}
	}
}

func (o *connOwner) keyOf(id *actor.PID) string { return keyOf(o.h.p, id) }

// dialAnswered enters the answer to a dial of the owner.
func (e *connEnd) dialAnswered(kind states.Kind) {
	if e.dial != nil {
		e.h.w.ids.Answered(e.h.w.now(), e.dial, kind.String())
		e.dial = nil
	}
}

// handleRequest answers a request as planned.
func (o *connOwner) handleRequest(ctx actor.Context, r *rdma.ConnectRequest) {
	id := ctx.Sender()
	o.h.w.ids.Heard(o.h.w.now(), o.name, o.keyOf(id), r.Kind())
	c := o.h.w.findDialled(r.PrivateData)
	if c == nil && o.h.w.stray && len(bytes.Trim(r.PrivateData, "\x00")) == 0 {
		o.h.sendCommand(id, &rdma.Reject{}, nil) // from an unplanned dial
		return
	}
	if c == nil {
		o.h.w.e.failWorld("a request with the private data %x, which nobody has sent", r.PrivateData)
		return
	}
	c.judgeIdentity(r, o.h.machine)
	c.newEnd(1, o.h, o, id)
	accept := func(actor.Context) { o.h.sendCommand(id, &rdma.Accept{}, nil) }
	switch c.spec.answer {
	case answerAccept:
		accept(ctx)
	case answerReject:
		o.h.sendCommand(id, &rdma.Reject{}, nil)
	case answerLate:
		rdma.After(ctx, c.spec.late, &connDo{accept})
	case answerIgnore:
	}
}

// handleReceived handles a message of the peer.
func (o *connOwner) handleReceived(ctx actor.Context, e *connEnd, m *rdma.Received) {
	w := o.h.w
	n, ok := e.arrivedFor(o)
	if !ok {
		w.e.failWorld("%s gets a message of %s that was not delivered to it", o.name, e.key)
		return
	}
	p := e.otherEnd()
	p.out.Check(w.now(), n, m.Data)
	if away := o.away; away != nil {
		o.away = nil
		away()
	}
	s := e.c.spec.sides[e.side]
	e.seen++
	nth := func(of int) bool { return of > 0 && e.seen%of == 0 }
	o.hoardMessage(ctx, e, m, n)
	if nth(s.keepOf) && o.mayKeep(e, s.keep) {
		k := o.keepMessage(e, m, n)
		rdma.After(ctx, s.keep, &connFree{k})
	}
	if nth(s.forward) {
		o.h.forwardMessage(ctx, e, n)
	}
	if nth(s.pass) && o.mayKeep(e, s.keep) {
		o.passMessage(ctx, e, m, n, s.keep)
	}
	if nth(s.echo) {
		o.answerMessage(ctx, e, m, n, s.hold)
	}
	if s.block > 0 && o.mayBlock() {
		o.h.p.Sleep(s.block)
		p.out.Check(w.now(), n, m.Data)
	}
}

// mayKeep reports whether an owner that must make progress retains another message. The peer learns
// of consumed messages when they are half of the credits. So at most half of them are retained, and
// only a few messages for long. The others delay a peer for at most a minute in total, because many
// messages with one credit would otherwise exceed the world's patience.
func (o *connOwner) mayKeep(e *connEnd, d time.Duration) bool {
	n := 0
	for _, k := range o.kept {
		if !k.over && k.e == e {
			n++
		}
	}
	if d > time.Second {
		e.long++
		return e.long <= 2 && n < max(e.credits/2, 1)
	}
	room := max(e.credits/2, 1)
	if n >= room || e.stood > time.Minute {
		return false
	}
	e.stood += d / time.Duration(room)
	return true
}

// keepMessage retains a message.
func (o *connOwner) keepMessage(e *connEnd, m *rdma.Received, n uint64) *kept {
	k := &kept{e: e, m: m.Retain(), data: m.Data, number: n}
	live := o.kept[:0]
	for _, k := range o.kept {
		if !k.over {
			live = append(live, k)
		}
	}
	o.kept = append(live, k)
	return k
}

// releaseMessage releases the retained message.
func (k *kept) releaseMessage() {
	if k.over {
		return
	}
	k.over = true
	k.checkBytes()
	k.m.Release()
}

// checkBytes compares the message's bytes, which must not have changed.
func (k *kept) checkBytes() {
	if !k.e.dead {
		k.e.otherEnd().out.Check(k.e.c.w.now(), k.number, k.data)
	}
}

// answerMessage sends a message of the same length back.
func (o *connOwner) answerMessage(ctx actor.Context, e *connEnd, m *rdma.Received, n uint64, hold bool) {
	size := min(len(m.Data), e.max)
	if !hold {
		s := e.newMessage("owner", size, false, false)
		ctx.Request(e.id, s)
		return
	}
	k := o.keepMessage(e, m, n)
	group := o.h.newName("answer")
	s := e.newMessage(group, size, true, true)
	sender := o.h.newClerk(e, group, k.releaseMessage)
	ctx.RequestWithCustomSender(e.id, s, sender)
}
