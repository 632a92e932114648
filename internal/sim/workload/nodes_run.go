package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/sim/oracle"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// node is a process: an actor that listens, and keeps connections.
type node struct {
	crew
	w        *nodes
	rt       *rdma.Runtime
	machine  int
	self     *actor.PID
	peers    *reconnect.Peers
	links    []*bond
	arrivals map[string]*oracle.Arrivals // by the identifier, or by the generation of a link
	accepted []*actor.PID                // identifiers that live
	listens  *actor.PID                  // nil: it does not
	ended    bool                        // it keeps nothing any more
}

// bond is a reconnecting actor.
type bond struct {
	of     pair
	pid    *actor.PID
	ledger *oracle.Link
	from   *oracle.Arrivals // over the present connection
	up     bool
	calls  int // what was asked to end it
	over   bool
}

// What the process's goroutines send its actor.
type (
	doParcels struct{ o *parcelOp }
	doCut     struct{ o *cutOp }
	doListen  struct{}
	doEnd     struct{}
)

// run is a machine's program.
func (w *nodes) run(p *world.Process, machine int) {
	if w.left[machine] {
		return
	}
	rt := w.open(p)
	if rt == nil {
		return
	}
	w.starts++
	me := &node{
		crew: crew{p: p}, w: w, rt: rt, machine: machine, peers: reconnect.NewPeers(reconnect.PeersConfig{Node: uint64(machine), Incarnation: w.starts}),
		arrivals: make(map[string]*oracle.Arrivals),
	}
	w.all[machine] = me
	me.self = p.System().Root.Spawn(actor.PropsFromFunc(me.receive, rt.OnLoop()))
	for n, op := range w.ops {
		at, do := me.due(op)
		if do == nil || w.begun[n] {
			continue
		}
		me.run(func() {
			p.Sleep(beginning + at - w.World.Now())
			w.begun[n] = true
			p.System().Root.Send(me.self, do)
		})
	}
	me.until(20*time.Millisecond, func() bool { return me.idle() && w.quiet() })
	p.System().Root.Send(me.self, &doEnd{})
	me.until(20*time.Millisecond, func() bool { return me.over() })
	me.ended = true
	me.until(20*time.Millisecond, w.allEnded)
	w.left[machine] = true
}

// due is when a process performs an operation, and what is sent to its actor then; nil: it is not
// its.
func (me *node) due(op Op) (at time.Duration, do any) {
	switch o := op.(type) {
	case *parcelOp:
		if o.from == me.machine {
			return o.at, &doParcels{o}
		}
	case *cutOp:
		if m := o.from; o.how != cutPeer && m == me.machine || o.how == cutPeer && o.to == me.machine {
			return o.at, &doCut{o}
		}
	}
	return 0, nil
}

// quiet reports whether no more faults happen, and all operations have begun.
func (w *nodes) quiet() bool {
	_, calm := w.Calm()
	for n, op := range w.ops {
		if _, ok := op.(*linkOp); !ok && !w.begun[n] {
			return false
		}
	}
	return calm
}

// allEnded reports whether no node keeps anything any more.
func (w *nodes) allEnded() bool {
	for m, n := range w.all {
		if !w.left[m] && (n == nil || !n.ended) {
			return false
		}
	}
	return true
}

// over reports whether all links have ended.
func (me *node) over() bool {
	for _, k := range me.links {
		if !k.over {
			return false
		}
	}
	return true
}

// receive is the node's actor.
func (me *node) receive(ctx actor.Context) {
	now := me.w.World.Now()
	k := me.link(ctx.Sender())
	switch m := ctx.Message().(type) {
	case *actor.Started:
		me.listen(ctx)
		for _, p := range me.w.order {
			if p.from == me.machine {
				me.keep(ctx, p)
			}
		}
	case *doListen:
		me.listen(ctx)
	case *doParcels:
		me.send(ctx, m.o)
	case *doCut:
		me.cut(ctx, m.o)
	case *doEnd:
		for _, k := range me.links {
			if !k.over {
				k.calls++
				ctx.Send(k.pid, &reconnect.Drain{Timeout: 20 * time.Second})
			}
		}
	case *rdma.ConnectRequest:
		me.accepted = append(me.accepted, ctx.Sender())
		ctx.Respond(&rdma.Accept{})
	case *rdma.Received:
		me.received(ctx, k, m)
	case *actor.DeadLetterResponse:
		if k := me.link(m.Target); k != nil {
			k.ledger.Late()
		}
	case *rdma.Closed:
		me.closed(ctx)
	default:
		if k != nil {
			me.report(k, now, m)
		}
	}
}

// listen listens. It does so again when the listener is gone.
func (me *node) listen(ctx actor.Context) {
	cfg := me.w.cfg.ID
	cfg.Route = me.peers.Route
	me.listens = me.rt.CreateID(ctx.Self(), cfg)
	ctx.Request(me.listens, &rdma.Serve{Addr: me.w.Addr(me.machine, 0)})
}

// closed takes note that an identifier is gone: an accepted one, or the listener.
func (me *node) closed(ctx actor.Context) {
	for i, id := range me.accepted {
		if id.Equal(ctx.Sender()) {
			me.accepted = append(me.accepted[:i], me.accepted[i+1:]...)
			return
		}
	}
	if me.listens != nil && me.listens.Equal(ctx.Sender()) {
		me.listens = nil
		me.run(func() {
			me.p.Sleep(50 * time.Millisecond)
			if !me.ended {
				me.p.System().Root.Send(me.self, &doListen{})
			}
		})
	}
}

// link finds a reconnecting actor; nil: it is none.
func (me *node) link(pid *actor.PID) *bond {
	for _, k := range me.links {
		if pid != nil && k.pid.Equal(pid) {
			return k
		}
	}
	return nil
}

// keep starts a reconnecting actor.
func (me *node) keep(ctx actor.Context, p pair) {
	w := me.w
	cfg := w.cfg
	cfg.Dial.Addr = w.Addr(p.to, 0)
	cfg.Rand = rand.New(rand.NewPCG(uint64(p.from), uint64(p.to)))
	if w.peers[p] {
		cfg.Peers, cfg.Peer = me.peers, uint64(p.to)
	}
	k := &bond{of: p, ledger: w.ledger.Link(fmt.Sprintf("machine %d's %dth connection to machine %d", p.from, w.starts, p.to))}
	k.pid = reconnect.Spawn(me.rt, ctx.Self(), cfg)
	me.links = append(me.links, k)
}

// send sends messages.
func (me *node) send(ctx actor.Context, o *parcelOp) {
	for _, k := range me.links {
		if k.of != (pair{o.from, o.to}) || k.over {
			continue
		}
		for range o.n {
			tag, p := k.ledger.Submit(o.size, !o.plain, o.idempotent && !o.plain)
			if o.plain {
				ctx.Request(k.pid, rdma.NewSend(p))
				continue
			}
			s := reconnect.NewSend(tag, p)
			s.Idempotent = o.idempotent
			ctx.Request(k.pid, s)
		}
	}
}

// cut ends something.
func (me *node) cut(ctx actor.Context, o *cutOp) {
	if o.how == cutPeer {
		for _, id := range me.accepted {
			ctx.Send(id, &rdma.Disconnect{})
		}
		return
	}
	for _, k := range me.links {
		if k.of != (pair{o.from, o.to}) || k.over {
			continue
		}
		k.calls++
		switch o.how {
		case cutClose:
			ctx.Send(k.pid, &rdma.Close{})
		case cutDrain:
			ctx.Send(k.pid, &reconnect.Drain{})
		default:
			ctx.Send(k.pid, &rdma.DestroyID{})
		}
	}
}

// received takes a message of another node's.
func (me *node) received(ctx actor.Context, k *bond, m *rdma.Received) {
	now := me.w.World.Now()
	if k != nil {
		k.ledger.Got(now)
		if k.up {
			k.from.Received(now, m.Data)
		}
		return
	}
	a := me.arrivals[ctx.Sender().Id]
	if a == nil {
		a = me.w.ledger.Arrivals()
		me.arrivals[ctx.Sender().Id] = a
	}
	a.Received(now, m.Data)
}

// report takes what a reconnecting actor reports.
func (me *node) report(k *bond, now time.Duration, m any) {
	w := me.w
	switch m := m.(type) {
	case *reconnect.Up:
		k.up, k.from = true, w.ledger.Arrivals()
		k.ledger.Up(now, m.Generation)
	case *reconnect.Settled:
		me.fates(k, now, m.Fates)
	case *reconnect.Down:
		me.fates(k, now, m.Fates)
		k.up = false
		k.ledger.Down(now, m.Generation, m.WasUp)
		if m.NextTry.IsZero() && k.calls == 0 && !w.Disturbed(k.of.from, k.of.to) {
			w.fail("%v: a connection is given up: %v", k.of, m.Err)
		}
	case *reconnect.Refused:
		k.ledger.Refused(now, m.Tag)
	case *reconnect.Closed:
		me.fates(k, now, m.Fates)
		k.over = true
		k.ledger.Closed(now, m.Counts.Delivered+m.Counts.Unsent+m.Counts.Unknown)
		if k.calls == 0 && !w.Disturbed(k.of.from, k.of.to) {
			w.fail("%v: a connection ends by itself: %v", k.of, m.Err)
		}
	}
}

func (me *node) fates(k *bond, now time.Duration, all []reconnect.Fate) {
	for _, f := range all {
		o := map[reconnect.Outcome]oracle.Outcome{
			reconnect.Delivered: oracle.WasDelivered, reconnect.Unsent: oracle.WasUnsent, reconnect.Unknown: oracle.WasUnknown,
		}[f.Outcome]
		k.ledger.Fate(now, f.Tag, o, f.Again)
	}
}
