package workload

import (
	"runtime"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/remoting"
)

// remoteActor is an actor of a node.
type remoteActor struct {
	me   *remoteNode
	name string
}

// doUnwatch cancels a watch.
type doUnwatch struct{ o *watchOp }

// remoteDispatcher runs Proto.Actor's mailboxes on goroutines of the process.
type remoteDispatcher struct{ p *world.Process }

// Schedule implements actor.Dispatcher.
func (d remoteDispatcher) Schedule(fn func()) { d.p.Go(fn) }

// Throughput implements actor.Dispatcher.
func (d remoteDispatcher) Throughput() int { return 30 }

// props returns the Props of an actor. Without a name it is one that is spawned for another node.
func (me *remoteNode) props(name string) *actor.Props {
	place := me.rt.OnLoop()
	switch {
	case name == mailA:
		place = actor.WithDispatcher(remoteDispatcher{me.p})
	case offLoop(name):
		place = me.rt.OffLoop()
	}
	guardian := actor.NewRestartingStrategy()
	switch n := me.w.Rand.IntN(3); {
	case n == 0:
		guardian = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective })
	case n == 1 && name != loopA && name != solid:
		guardian = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
	}
	return actor.PropsFromProducer(func() actor.Actor { return &remoteActor{me, name} }, place, actor.WithGuardian(guardian))
}

// offLoop reports whether an actor may block.
func offLoop(name string) bool { return strings.HasPrefix(name, "off-") || name == mailA }

// spawn spawns an actor of the node.
func (me *remoteNode) spawn(name string) {
	if _, err := me.p.System().Root.SpawnNamed(me.props(name), name); err != nil {
		me.w.fail("%s: %s: %v", me.p.Name(), name, err)
	}
}

// Receive implements actor.Actor.
func (a *remoteActor) Receive(ctx actor.Context) {
	me := a.me
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.name = ctx.Self().Id
		me.life.Begins(me.w.World.Now(), a.name)
	case *actor.Stopping:
		a.stopping()
	case *actor.Stopped:
		a.again()
	case *wrapperspb.BytesValue:
		a.received(ctx, m.Value)
	case *unknownMessage:
		a.received(ctx, m.bytes)
	case *postOp:
		for range m.n {
			me.post(m, ctx, a.name)
		}
	case *watchOp:
		a.watch(ctx, m)
	case *doUnwatch:
		if me.happens() {
			to := place{m.o.to, m.o.target}
			me.life.Unwatch(a.name, me.w.place(to))
			ctx.Unwatch(me.pid(to))
		}
	case *actor.Terminated:
		a.terminated(m)
	case *remoting.Refused:
		if me.happens() {
			me.life.Full(me.w.World.Now(), a.name, placeOf(m.Target))
		}
	}
}

// stopping records that the actor ends.
func (a *remoteActor) stopping() {
	me := a.me
	if me.gone || !me.happens() {
		return
	}
	if a.name == loopA || a.name == solid {
		me.w.fail("%s of %s stops, and nobody may stop it", a.name, me.p.Name())
	}
	me.w.World.Trace("%s of %s stops", a.name, me.p.Name())
	me.life.Stops(me.w.World.Now(), a.name, a.name == mailA)
	me.life.Forget(a.name)
	for _, p := range me.asked[a.name] { // their continuations no longer run
		if !p.Fated() {
			p.Fate(me.w.World.Now(), oracle.WasLate)
		}
	}
	delete(me.asked, a.name)
}

// again spawns another actor of that name after a while.
func (a *remoteActor) again() {
	me, name := a.me, a.name
	if me.gone || strings.HasPrefix(name, spawnedAs) {
		return
	}
	me.p.Go(func() {
		me.p.Sleep(time.Millisecond + 10*me.w.pause())
		if !me.gone && me.life.Lives() {
			me.spawn(name)
		}
	})
}

func (a *remoteActor) watch(ctx actor.Context, o *watchOp) {
	me, to := a.me, place{o.to, o.target}
	if !me.happens() || !me.life.Watch(me.w.World.Now(), a.name, me.w.place(to), me.w.watchable(o.target)) {
		return
	}
	ctx.Watch(me.pid(to))
	if o.unwatch > 0 {
		self, root := ctx.Self(), ctx.ActorSystem().Root
		me.run(func() {
			me.p.Sleep(o.unwatch)
			root.Send(self, &doUnwatch{o})
		})
	}
}

func (a *remoteActor) terminated(m *actor.Terminated) {
	me := a.me
	if !me.happens() {
		return
	}
	who := placeOf(m.Who)
	me.w.World.Trace("%s of %s is notified that %s at %s has ended: %v", a.name, me.p.Name(), who.Name, who.Node, m.Why)
	why, ok := map[actor.TerminatedReason]oracle.Reason{
		actor.TerminatedReason_Stopped: oracle.HasStopped, actor.TerminatedReason_AddressTerminated: oracle.IsUnreachable,
		actor.TerminatedReason_NotFound: oracle.IsNotFound,
	}[m.Why]
	if !ok {
		me.w.fail("%s of %s is notified for the reason %v", a.name, me.p.Name(), m.Why)
	}
	me.life.Terminated(me.w.World.Now(), a.name, who, why, me.w.quiet(me.machine, me.w.machine(who.Node)))
}

// received handles a message.
func (a *remoteActor) received(ctx actor.Context, b []byte) {
	me, w := a.me, a.me.w
	if !me.happens() {
		return
	}
	p := w.posts[me.got(a.name, b)]
	if p == nil {
		return
	}
	if p.op == nil || p.answers != nil {
		return // an answer
	}
	if p.op.header && p.op.how == sendNobody && ctx.MessageHeader().Get("who") != p.op.sender {
		w.fail("%v has come without its header", p)
	}
	if !p.forwarded {
		a.do(ctx, p, b)
	}
	to := placeOf(ctx.Sender())
	if strings.HasPrefix(to.Name, "future$") {
		to = p.Asker()
	}
	if me.happens() && to != (oracle.Place{}) && (p.forwarded || p.op.then != thenForward) {
		me.answer(ctx, a.name, p, to)
	}
}

// do performs the reaction to a message.
func (a *remoteActor) do(ctx actor.Context, p *remotePost, b []byte) {
	me, o := a.me, p.op
	switch o.then {
	case thenSleep:
		if offLoop(a.name) {
			me.p.Sleep(o.d)
		}
	case thenRetain:
		me.run(func() {
			me.p.Sleep(o.d)
			if me.life.Lives() && !p.Intact(b) {
				me.w.fail("%v has changed after it was received", p)
			}
		})
	case thenStand:
		if first := !me.w.stood[o]; first && offLoop(a.name) {
			me.w.stood[o] = true
			me.p.Sleep(o.d)
		}
	case thenForward:
		me.forward(ctx, a.name, p)
	case thenPanic:
		panic(errPlanned)
	case thenGoexit:
		if strings.HasPrefix(a.name, "off-") {
			runtime.Goexit()
		}
	case thenEnd:
		if a.name != loopA && a.name != solid {
			ctx.Stop(ctx.Self())
		}
	}
}
