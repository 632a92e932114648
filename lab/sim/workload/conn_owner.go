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

// owner returns an owner of a kind.
func (h *connHost) owner(kind ownerKind) *connOwner {
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
	o := &connOwner{h: h, p: h.p, name: h.name(kind), handler: true, kind: ownHandler}
	h.owners = append(h.owners, o)
	return o
}

// off reports whether the owner may block.
func (o *connOwner) off() bool { return o.kind == ownOff || o.kind == sharedOff }

// Receive implements actor.Actor.
func (o *connOwner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		o.pid = ctx.Self()
		return
	case *actor.Stopping:
		o.stopping()
		return
	case *connFree:
		m.k.free()
		return
	case *connHoard:
		for _, k := range m.e.hoarded {
			k.free()
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
		o.requested(ctx, m)
	case *actor.DeadLetterResponse:
		if e := o.h.ends[m.Target.GetId()]; e != nil {
			e.fate("owner", m)
		}
	case rdma.Event:
		o.event(ctx, m)
	}
}

// stopping releases all retained messages.
func (o *connOwner) stopping() {
	now := o.h.w.now()
	o.stopped = &now
	for _, k := range o.kept {
		if !k.passed {
			k.free()
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

// event handles a report of an identifier to its owner.
func (o *connOwner) event(ctx actor.Context, ev rdma.Event) {
	from := ctx.Sender()
	o.h.w.ids.Heard(o.h.w.now(), o.name, o.key(from), ev.Kind())
	e := o.h.ends[from.GetId()]
	if e == nil {
		return // a listener
	}
	switch m := ev.(type) {
	case *rdma.Received:
		o.received(ctx, e, m)
	case *rdma.Sent, *rdma.SendFailed:
		e.fate("owner", m)
	case *rdma.Writable:
		if e.pumping != nil {
			e.pumping.full = false
			e.pumpOn(ctx)
		}
	case *rdma.Disconnected, *rdma.DeviceRemoval:
		if e.manual { // nothing else destroys it
			destroy := func(actor.Context) { o.h.ask(e.id, &rdma.DestroyID{}, nil) }
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

func (o *connOwner) key(id *actor.PID) string { return key(o.h.p, id) }

// dialAnswered enters the answer to a dial of the owner.
func (e *connEnd) dialAnswered(kind states.Kind) {
	if e.dial != nil {
		e.h.w.ids.Answered(e.h.w.now(), e.dial, kind.String())
		e.dial = nil
	}
}

// requested answers a request as planned.
func (o *connOwner) requested(ctx actor.Context, r *rdma.ConnectRequest) {
	id := ctx.Sender()
	o.h.w.ids.Heard(o.h.w.now(), o.name, o.key(id), r.Kind())
	c := o.h.w.dialled(r.PrivateData)
	if c == nil && o.h.w.stray && len(bytes.Trim(r.PrivateData, "\x00")) == 0 {
		o.h.ask(id, &rdma.Reject{}, nil) // from an unplanned dial
		return
	}
	if c == nil {
		o.h.w.e.World.Fail("%s: a request with the private data %x, which nobody has sent", o.h.w.e.Name, r.PrivateData)
		return
	}
	c.introduced(r, o.h.machine)
	c.end(1, o.h, o, id)
	accept := func(actor.Context) { o.h.ask(id, &rdma.Accept{}, nil) }
	switch c.spec.answer {
	case answerAccept:
		accept(ctx)
	case answerReject:
		o.h.ask(id, &rdma.Reject{}, nil)
	case answerLate:
		rdma.After(ctx, c.spec.late, &connDo{accept})
	case answerIgnore:
	}
}

// received handles a message of the peer.
func (o *connOwner) received(ctx actor.Context, e *connEnd, m *rdma.Received) {
	w := o.h.w
	n, ok := e.arrivedFor(o)
	if !ok {
		w.e.World.Fail("%s: %s gets a message of %s that was not delivered to it", w.e.Name, o.name, e.key)
		return
	}
	p := e.peer()
	p.out.Check(w.now(), n, m.Data)
	if away := o.away; away != nil {
		o.away = nil
		away()
	}
	s := e.c.spec.sides[e.side]
	e.seen++
	nth := func(of int) bool { return of > 0 && e.seen%of == 0 }
	o.hoard(ctx, e, m, n)
	if nth(s.keepOf) && o.mayKeep(e, s.keep) {
		k := o.keep(e, m, n)
		rdma.After(ctx, s.keep, &connFree{k})
	}
	if nth(s.forward) {
		o.h.forward(ctx, e, n)
	}
	if nth(s.pass) && o.mayKeep(e, s.keep) {
		o.pass(ctx, e, m, n, s.keep)
	}
	if nth(s.echo) {
		o.answer(ctx, e, m, n, s.hold)
	}
	if s.block > 0 && o.off() {
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

// keep retains a message.
func (o *connOwner) keep(e *connEnd, m *rdma.Received, n uint64) *kept {
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

// free releases it.
func (k *kept) free() {
	if k.over {
		return
	}
	k.over = true
	k.check()
	k.m.Release()
}

// check compares its bytes, which must not have changed.
func (k *kept) check() {
	if !k.e.dead {
		k.e.peer().out.Check(k.e.c.w.now(), k.number, k.data)
	}
}

// answer sends a message of the same length back.
func (o *connOwner) answer(ctx actor.Context, e *connEnd, m *rdma.Received, n uint64, hold bool) {
	size := min(len(m.Data), e.max)
	if !hold {
		s := e.message("owner", size, false, false)
		ctx.Request(e.id, s)
		return
	}
	k := o.keep(e, m, n)
	group := o.h.name("answer")
	s := e.message(group, size, true, true)
	sender := o.h.clerk(e, group, k.free)
	ctx.RequestWithCustomSender(e.id, s, sender)
}
