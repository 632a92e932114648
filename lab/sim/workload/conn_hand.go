package workload

import (
	"runtime"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

// arrival is a message on its way to an owner.
type arrival struct {
	n  uint64
	to *connOwner
}

// arrivedFor removes the oldest message that is on its way to an owner. An identifier that was
// handed over may have sent some to its previous owner.
func (e *connEnd) arrivedFor(o *connOwner) (n uint64, ok bool) {
	for i, a := range e.arrived {
		if a.to == o {
			e.arrived = slices.Delete(e.arrived, i, i+1)
			return a.n, true
		}
	}
	return 0, false
}

// handOver hands the identifier over to a new owner.
func (e *connEnd) handOver(op connOp) {
	if !e.established || e.ended || e.closed || e.dial != nil {
		return
	}
	kind := ownLoop
	if op.way%2 == 1 {
		kind = ownOff
	}
	e.handTo(e.h.ownerOfKind(kind))
}

// handTo hands the identifier over to an owner.
func (e *connEnd) handTo(o *connOwner) {
	cmd := &rdma.Handover{To: o.pid}
	if e.heirs == nil {
		e.heirs = make(map[rdma.Command]*connOwner)
	}
	e.heirs[cmd] = o
	e.h.sendCommand(e.id, cmd, nil)
}

// handedOver is called when a Handover is answered: later messages go to the heir.
func (e *connEnd) handedOver(cmd rdma.Command) {
	heir, was := e.heirs[cmd], e.o
	if heir == nil || heir == was {
		return
	}
	without := func(all []*connEnd) []*connEnd {
		return slices.DeleteFunc(all, func(x *connEnd) bool { return x == e })
	}
	was.ends = without(was.ends)
	was.ids = slices.DeleteFunc(was.ids, func(id string) bool { return id == e.key })
	was.former = append(without(was.former), e)
	e.o = heir
	heir.ends, heir.ids = append(heir.ends, e), append(heir.ids, e.key)
	if heir.stopped != nil {
		e.c.ending = true
		e.h.w.ids.Orphan(e.key)
	}
	if was.handler { // nothing else stops it after the handover of its connection
		e.h.root.Poison(was.pid)
	}
}

// connPass is a retained message that is handed to another actor, which releases it.
type connPass struct {
	k *kept
	d time.Duration
}

// passMessage retains a message that another actor releases.
func (o *connOwner) passMessage(ctx actor.Context, e *connEnd, m *rdma.Received, n uint64, d time.Duration) {
	k := o.keepMessage(e, m, n)
	k.passed = true
	ctx.Send(o.h.sinkAt(int(n%2)).pid, &connPass{k, d})
}

// panicOrExit makes code of the program not return: the Fn of a Call, or an owner's Receive, by a
// panic or by runtime.Goexit. No code calls Goexit on a loop: that is a bug, which OnPanic reports.
func (e *connEnd) panicOrExit(op connOp) {
	if op.way%3 == 0 {
		e.c.ending, e.c.rude = true, true // the identifier's actor ends immediately
		e.c.excuseFaults()
		e.h.sendCommand(e.id, &rdma.Call{Fn: func(*cmid.ID) error { panic(errPlanned) }}, func(answer any) {
			if _, done := answer.(*rdma.Done); done {
				e.h.w.e.failWorld("a Call of %s whose function has not returned is answered with Done", e.key)
			}
		})
		return
	}
	away := func() { panic(errPlanned) }
	if e.o.mayBlock() && op.way%3 == 1 {
		away = runtime.Goexit
	}
	switch {
	case e.o.handler: // its Props would create another one without its state
	case op.way/3%2 == 0:
		e.h.root.Send(e.o.pid, &connDo{func(actor.Context) { away() }})
	default:
		e.o.away = away
	}
}

// sendForeign sends the identifier commands about memory of another connection. They must be
// refused, without an effect on the other connection.
func (e *connEnd) sendForeign(op connOp) {
	var other *connEnd
	var m *rdma.Memory
	for _, c := range e.h.w.order {
		for _, x := range c.ends {
			switch {
			case x == nil || x == e || x.h != e.h || x.dead:
			case x.memory.scratch != nil:
				other, m = x, x.memory.scratch
			case len(x.memory.granted) > 0:
				other, m = x, x.memory.granted[0].m
			}
		}
	}
	if other == nil {
		return
	}
	var cmd rdma.Command
	switch op.way % 5 {
	case 0:
		cmd = &rdma.Grant{Memory: m}
	case 1:
		cmd = &rdma.Revoke{Memory: m}
	case 2:
		cmd = &rdma.FreeMemory{Memory: m}
	default:
		p := e.otherEnd()
		if p == nil || len(p.memory.granted) == 0 {
			return
		}
		key := p.memory.granted[0].key
		cmd = &rdma.Read{Memory: m, Length: 8, Key: key}
		if op.way%5 == 4 {
			cmd = &rdma.Write{Memory: m, Length: 8, Key: key}
		}
	}
	e.h.sendCommand(e.id, cmd, func(answer any) {
		if _, failed := answer.(rdma.Failure); !failed && !isDeadLetter(answer) {
			e.h.w.e.failWorld("a %T of %s about memory of %s is answered with %T", cmd, e.key, other.key, answer)
		}
	})
}

func isDeadLetter(answer any) bool {
	_, ok := answer.(*actor.DeadLetterResponse)
	return ok
}

// connectTwice connects step by step, with two Connects from two senders: one of them is refused.
func (h *connHost) connectTwice(e *connEnd, private []byte) {
	open := 2
	failed := func(any) {
		if !e.established {
			h.sendCommand(e.id, &rdma.DestroyID{}, nil)
		}
	}
	then := func(cmd rdma.Command, next func()) {
		h.sendCommand(e.id, cmd, func(answer any) {
			if _, ok := answer.(rdma.Failure); ok || isDeadLetter(answer) || e.ended || e.closed {
				failed(answer)
				return
			}
			next()
		})
	}
	answered := func(answer any) {
		if open--; open == 0 {
			failed(answer)
		}
	}
	then(&cmid.ResolveAddr{Src: e.c.sourceAddr(), Dst: cmid.MustAddr(h.w.e.Addr(e.c.spec.to, e.c.spec.listener))}, func() {
		then(&cmid.ResolveRoute{}, func() {
			one := &rdma.Connect{PrivateData: private}
			two := one
			if e.c.number%2 == 0 {
				two = &rdma.Connect{PrivateData: private}
			}
			h.sendCommand(e.id, one, answered)
			h.sendCommand(e.id, two, answered)
		})
	})
}
