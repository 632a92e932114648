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

// actorProps returns the Props of an actor. Without a name it is one that is spawned for another
// node.
func (me *remoteNode) actorProps(name string) *actor.Props {
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

// spawnActor spawns an actor of the node.
func (me *remoteNode) spawnActor(name string) {
	if _, err := me.p.System().Root.SpawnNamed(me.actorProps(name), name); err != nil {
		me.w.failWorld("%s: %s: %v", me.p.Name(), name, err)
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
		a.recordStop()
	case *actor.Stopped:
		a.spawnAgain()
	case *wrapperspb.BytesValue:
		a.handleReceived(ctx, m.Value)
	case *unknownMessage:
		a.handleReceived(ctx, m.bytes)
	case *postOp:
		for range m.n {
			me.sendPost(m, ctx, a.name)
		}
	case *watchOp:
		a.watchActor(ctx, m)
	case *doUnwatch:
		if me.recordEvent() {
			to := place{m.o.to, m.o.target}
			me.life.Unwatch(a.name, me.w.ledgerPlace(to))
			ctx.Unwatch(me.remotePID(to))
		}
	case *actor.Terminated:
		a.handleTerminated(m)
	case *remoting.Refused:
		if me.recordEvent() {
			me.life.Full(me.w.World.Now(), a.name, placeOf(m.Target))
		}
	}
}

// recordStop records that the actor ends.
func (a *remoteActor) recordStop() {
	me := a.me
	if me.gone || !me.recordEvent() {
		return
	}
	if a.name == loopA || a.name == solid {
		me.w.failWorld("%s of %s stops, and nobody may stop it", a.name, me.p.Name())
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

// spawnAgain spawns another actor of that name after a while.
func (a *remoteActor) spawnAgain() {
	me, name := a.me, a.name
	if me.gone || strings.HasPrefix(name, spawnedAs) {
		return
	}
	me.p.Go(func() {
		me.p.Sleep(time.Millisecond + 10*me.w.drawPause())
		if !me.gone && me.life.Lives() {
			me.spawnActor(name)
		}
	})
}

func (a *remoteActor) watchActor(ctx actor.Context, o *watchOp) {
	me, to := a.me, place{o.to, o.target}
	if !me.recordEvent() || !me.life.Watch(me.w.World.Now(), a.name, me.w.ledgerPlace(to), me.w.isWatchable(o.target)) {
		return
	}
	ctx.Watch(me.remotePID(to))
	if o.unwatch > 0 {
		self, root := ctx.Self(), ctx.ActorSystem().Root
		me.startGoroutine(func() {
			me.p.Sleep(o.unwatch)
			root.Send(self, &doUnwatch{o})
		})
	}
}

func (a *remoteActor) handleTerminated(m *actor.Terminated) {
	me := a.me
	if !me.recordEvent() {
		return
	}
	who := placeOf(m.Who)
	me.w.World.Trace("%s of %s is notified that %s at %s has ended: %v", a.name, me.p.Name(), who.Name, who.Node, m.Why)
	why, ok := map[actor.TerminatedReason]oracle.Reason{
		actor.TerminatedReason_Stopped: oracle.HasStopped, actor.TerminatedReason_AddressTerminated: oracle.IsUnreachable,
		actor.TerminatedReason_NotFound: oracle.IsNotFound,
	}[m.Why]
	if !ok {
		me.w.failWorld("%s of %s is notified for the reason %v", a.name, me.p.Name(), m.Why)
	}
	me.life.Terminated(me.w.World.Now(), a.name, who, why, me.w.isUndisturbed(me.machine, me.w.machineOfNode(who.Node)))
}

// handleReceived handles a message.
func (a *remoteActor) handleReceived(ctx actor.Context, b []byte) {
	me, w := a.me, a.me.w
	if !me.recordEvent() {
		return
	}
	p := w.posts[me.recordReceived(a.name, b)]
	if p == nil {
		return
	}
	if p.op == nil || p.answers != nil {
		return // an answer
	}
	if p.op.header && p.op.how == sendNobody && ctx.MessageHeader().Get("who") != p.op.sender {
		w.failWorld("%v has come without its header", p)
	}
	if !p.forwarded {
		a.performReaction(ctx, p, b)
	}
	to := placeOf(ctx.Sender())
	if strings.HasPrefix(to.Name, "future$") {
		to = p.Asker()
	}
	if me.recordEvent() && to != (oracle.Place{}) && (p.forwarded || p.op.then != thenForward) {
		me.answerPost(ctx, a.name, p, to)
	}
}

// performReaction performs the reaction to a message.
func (a *remoteActor) performReaction(ctx actor.Context, p *remotePost, b []byte) {
	me, o := a.me, p.op
	switch o.then {
	case thenSleep:
		if offLoop(a.name) {
			me.p.Sleep(o.d)
		}
	case thenRetain:
		me.startGoroutine(func() {
			me.p.Sleep(o.d)
			if me.life.Lives() && !p.Intact(b) {
				me.w.failWorld("%v has changed after it was received", p)
			}
		})
	case thenStand:
		if first := !me.w.stood[o]; first && offLoop(a.name) {
			me.w.stood[o] = true
			me.p.Sleep(o.d)
		}
	case thenForward:
		me.forwardPost(ctx, a.name, p)
	case thenPanic:
		panic(errPlanned)
	case thenExit:
		if strings.HasPrefix(a.name, "off-") {
			runtime.Goexit()
		}
	case thenEnd:
		if a.name != loopA && a.name != solid {
			ctx.Stop(ctx.Self())
		}
	}
}
