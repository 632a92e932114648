package workload

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
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
	arrivals map[string]*oracle.Arrivals // by the identifier
	accepted []*actor.PID                // identifiers that live
	listens  *actor.PID                  // nil: it does not
	asked    int                         // about unknown nodes
	met      bool                        // all its connections were there
	draining bool                        // it ends everything, and begins nothing
	ended    bool                        // it keeps nothing any more
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
	me := &node{crew: crew{p: p}, w: w, rt: rt, machine: machine, arrivals: make(map[string]*oracle.Arrivals)}
	me.peers = reconnect.NewPeers(reconnect.PeersConfig{
		Node: uint64(machine), Incarnation: w.starts, Unknown: me.unknown, Strangers: w.strangers,
	})
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
	if w.strangers == 0 { // else some find no place, for as long as others have it
		me.until(20*time.Millisecond, func() bool { me.met = me.met || me.up(); return w.allMet() })
	}
	me.draining = true
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

// allMet reports whether all nodes have had their connections, after all that has happened to them.
func (w *nodes) allMet() bool {
	for m, n := range w.all {
		if !w.left[m] && (n == nil || !n.met) {
			return false
		}
	}
	return true
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

// up reports whether all connections that the node keeps are there.
func (me *node) up() bool {
	for _, k := range me.links {
		if me.w.kept[k.of] != nil && !k.over && k.up == nil {
			return false
		}
	}
	return true
}

// receive is the node's actor.
func (me *node) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		me.listen(ctx)
		for _, p := range me.w.order {
			if p.from == me.machine {
				me.bond(p, me.w.kept[p], true)
			}
		}
	case *doListen:
		me.listen(ctx)
	case *doParcels:
		me.pass(ctx, pair{m.o.from, m.o.to})
	case *doCut:
		if m.o.how != cutPeer {
			me.pass(ctx, pair{m.o.from, m.o.to})
			return
		}
		for _, id := range me.accepted {
			ctx.Send(id, &rdma.Disconnect{})
		}
	case *doEnd:
		for _, k := range me.links {
			ctx.Send(k.self, m)
		}
	case *rdma.ConnectRequest:
		me.accepted = append(me.accepted, ctx.Sender())
		ctx.Respond(&rdma.Accept{})
	case *rdma.Received:
		me.received(ctx, m)
	case *rdma.Closed:
		me.closed(ctx)
	}
}

// pass passes an operation to the owners of connections.
func (me *node) pass(ctx actor.Context, of pair) {
	for _, k := range me.links {
		if k.of == of {
			ctx.Send(k.self, ctx.Message())
		}
	}
}

// listen listens. It does so again when the listener is gone.
func (me *node) listen(ctx actor.Context) {
	cfg := me.w.cfg.ID
	cfg.Route, cfg.Place = me.peers.Route, me.peers.Place
	me.listens = me.rt.CreateID(ctx.Self(), cfg)
	ctx.Request(me.listens, &rdma.Serve{Addr: me.w.Addr(me.machine, 0)})
}

// unknown makes a reconnecting actor for a node that has none here, or finds the one that has just
// been made.
func (me *node) unknown(s reconnect.Stranger) *actor.PID {
	p := pair{me.machine, int(s.Node)}
	for _, k := range me.links {
		if k.of == p && !k.over {
			return k.pid
		}
	}
	o := me.w.kept[pair{p.to, p.from}]
	if me.asked++; o == nil || me.asked == 1 && me.w.refuses || me.draining {
		return nil
	}
	return me.bond(p, o, false).pid
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

// received takes a message of another node's, over a connection that was accepted.
func (me *node) received(ctx actor.Context, m *rdma.Received) {
	a := me.arrivals[ctx.Sender().Id]
	if a == nil {
		a = me.w.ledger.Arrivals()
		me.arrivals[ctx.Sender().Id] = a
	}
	a.Received(me.w.World.Now(), m.Data)
}
