package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// lives is the workload.
type lives struct {
	*Env
	all   []*life
	dials int
}

// life is a runtime.
type life struct {
	*lifeOp
	w       *lives
	p       *world.Process
	rt      *rdma.Runtime
	begun   bool
	closing bool
	ended   bool
	owners  []*lifeOwner
	links   []*lifeLinked
}

func newLives(e *Env, ops []Op) Workload {
	w := &lives{Env: e}
	for _, op := range ops {
		w.all = append(w.all, &life{lifeOp: op.(*lifeOp), w: w})
	}
	return w
}

// Start implements Workload.
func (w *lives) Start() {
	for m := range w.Machines {
		if slices.ContainsFunc(w.all, func(l *life) bool { return l.machine == m }) {
			w.Env.Start(m, func(p *world.Process) { w.main(m, p) })
		}
	}
}

// main runs the lives of a machine that have not begun.
func (w *lives) main(machine int, p *world.Process) {
	for _, l := range w.all {
		if l.machine == machine && !l.begun {
			p.Go(func() {
				p.Sleep(l.at - w.World.Now())
				if p.Context().Err() == nil { // otherwise it was killed, and the world ends
					l.p, l.begun = p, true
					l.runLife()
				}
			})
		}
	}
}

// addrOf returns the address of a life's listener.
func (w *lives) addrOf(n int) string {
	for _, l := range w.all {
		if l.number == n {
			return w.Addr(l.machine, n)
		}
	}
	return w.Addr(0, n) // it was left out: there is no listener
}

// runLife runs a life.
func (l *life) runLife() {
	cfg := l.w.Config
	if l.has(lifeRedial) {
		cfg.Limits.Connections = l.dials + 1 // and the listener
	}
	l.w.addSecurity(l.p, &cfg)
	rt, err := l.p.Open(cfg)
	if err != nil {
		l.w.World.Trace("%s: runtime %d cannot open", l.w.Name, l.number)
		l.ended = true
		return
	}
	l.rt = rt
	l.createListener()
	for range l.dials {
		if l.has(lifeLink) && !l.has(lifeRedial) {
			l.startLink()
		} else {
			l.spawnOwner(&lifeOwner{}, false)
		}
	}
	l.p.Sleep(l.span)
	l.shutDown()
}

func (l *life) has(verb string) bool { return slices.Contains(l.lifeOp.has, verb) }

// shutDown shuts the life's runtime down.
func (l *life) shutDown() {
	ctx := context.Background()
	if l.cut > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.cut)
		defer cancel()
	}
	l.closing = true
	l.w.World.Trace("%s: runtime %d shuts down", l.w.Name, l.number)
	connected := slices.DeleteFunc(slices.Clone(l.links), func(k *lifeLinked) bool { return !k.up })
	begun := l.w.World.Now()
	err := l.rt.Shutdown(ctx)
	took := l.w.World.Now() - begun
	l.w.World.Trace("%s: runtime %d has shut down, all of it: %v", l.w.Name, l.number, err == nil)
	if took > lifeEnds && !l.w.Disturbed() {
		l.w.failWorld("runtime %d took %v to shut down, and nothing was in its way", l.number, took)
	}
	l.ended = true
	l.p.Sleep(time.Second) // owners off the loops run on other goroutines
	if l.wasKilled() {
		return
	}
	for _, k := range connected {
		if !k.closed && !l.w.Disturbed() {
			l.w.failWorld("runtime %d has shut down, and an owner has got no Closed of its reconnecting actor", l.number)
		}
	}
	for _, o := range l.owners {
		for id := range o.ids {
			l.w.failWorld("runtime %d has shut down, and %s has got no Closed of %s", l.number, o.name, id)
		}
	}
}

// wasKilled reports whether the process was killed. Its goroutines continue at the end of the
// world, without their state.
func (l *life) wasKilled() bool { return l.p.Context().Err() != nil }

// lifeEnds is how long a Shutdown may take when peers and network work. It does not wait for peers
// to close.
const lifeEnds = 5 * time.Second

// Done implements Workload.
func (w *lives) Done() bool {
	for _, l := range w.all {
		if !l.isOver() {
			return false
		}
	}
	return true
}

// isOver reports whether nothing of a life is outstanding.
func (l *life) isOver() bool {
	if !l.begun || l.p.Dead() {
		return l.begun
	}
	return l.ended
}

// Check implements Workload: shutDown has judged all.
func (w *lives) Check() {}

// lifeOwner owns identifiers: a listener with its connections, or consecutive ones that dial.
type lifeOwner struct {
	l     *life
	name  string
	dials bool
	ids   map[string]bool // made, and not closed
}

// createListener creates the listener.
func (l *life) createListener() {
	o := &lifeOwner{}
	pid := l.spawnOwner(o, l.off)
	id := l.rt.CreateID(pid)
	o.ids[id.Id] = true
	l.rt.System().Root.RequestWithCustomSender(id, &rdma.Serve{Addr: l.w.Addr(l.machine, l.number)}, pid)
}

// spawnOwner starts an owner. An owner off the loops only accepts.
func (l *life) spawnOwner(o *lifeOwner, off bool) *actor.PID {
	o.l, o.name, o.ids = l, fmt.Sprintf("owner %d", len(l.owners)+1), make(map[string]bool)
	o.dials = len(l.owners) > 0
	l.owners = append(l.owners, o)
	place := l.rt.OnLoop()
	if off {
		place = l.rt.OffLoop()
	}
	return l.rt.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return o }, place))
}

// lifeLater makes an owner call a function.
type lifeLater struct{ do func(ctx actor.Context) }

// Receive implements actor.Actor.
func (o *lifeOwner) Receive(ctx actor.Context) {
	l := o.l
	switch m := ctx.Message().(type) {
	case *actor.Started:
		if o.dials {
			o.dialPeer(ctx)
		}
	case *lifeLater:
		m.do(ctx)
	case *rdma.ConnectRequest:
		id := ctx.Sender()
		o.ids[id.Id] = true
		if l.late == 0 {
			ctx.Request(id, &rdma.Accept{})
			return
		}
		l.callLater(ctx, l.late, func(ctx actor.Context) { ctx.Request(id, &rdma.Accept{}) })
	case *rdma.Established:
		if o.dials {
			id := ctx.Sender()
			ctx.Request(id, rdma.NewSend([]byte("hello")))
			l.callLater(ctx, l.rest, func(ctx actor.Context) { ctx.Request(id, &rdma.Close{}) })
		}
	case *rdma.Received:
		if !o.dials {
			ctx.Request(ctx.Sender(), rdma.NewSend(m.Data))
		}
	case *rdma.Closed:
		o.handleClosed(ctx, m)
	}
}

// callLater makes an owner call a function after a while, wherever it runs.
func (l *life) callLater(ctx actor.Context, d time.Duration, do func(ctx actor.Context)) {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	l.p.Go(func() {
		l.p.Sleep(d)
		root.Send(self, &lifeLater{do})
	})
}

func (o *lifeOwner) dialPeer(ctx actor.Context) {
	id := o.l.rt.CreateID(ctx.Self())
	o.ids[id.Id] = true
	ctx.Request(id, &rdma.Dial{Addr: o.l.w.addrOf(o.l.to)})
}

// handleClosed handles the end of an identifier, after which there is room for another one.
func (o *lifeOwner) handleClosed(ctx actor.Context, m *rdma.Closed) {
	l := o.l
	id := ctx.Sender().Id
	if !o.ids[id] {
		l.w.failWorld("runtime %d: %s has got Closed of %s twice", l.number, o.name, id)
	}
	delete(o.ids, id)
	if !o.dials || l.closing {
		return
	}
	if errors.Is(m.Err, unix.EMFILE) && l.has(lifeRedial) && !l.sharesRoom() {
		l.w.failWorld("runtime %d: %s has no room for its only identifier: %v", l.number, o.name, m.Err)
	}
	if l.w.dials++; l.w.dials < 1000 && m.Err == nil {
		o.dialPeer(ctx) // immediately
		return
	}
	l.callLater(ctx, 50*time.Millisecond, func(ctx actor.Context) {
		if !l.closing {
			o.dialPeer(ctx)
		}
	})
}

// sharesRoom reports whether others may use the room that a life's owners have freed: peers that
// dial it.
func (l *life) sharesRoom() bool {
	return l.w.Disturbed(l.machine) || slices.ContainsFunc(l.w.all, func(o *life) bool { return o.to == l.number })
}

// lifeLinked is the state of a reconnecting actor. One without a connection at the shutdown of its
// runtime may end silently.
type lifeLinked struct{ up, closed bool }

// startLink starts a reconnecting actor.
func (l *life) startLink() {
	place := l.rt.OnLoop()
	if l.off {
		place = l.rt.OffLoop()
	}
	k := &lifeLinked{}
	l.links = append(l.links, k)
	owner := l.rt.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *reconnect.Up:
			k.up = true
		case *reconnect.Down:
			k.up = false
		case *reconnect.Closed:
			k.closed = true
		}
	}, place))
	cfg := reconnect.Config{Rand: l.p.Rand()}
	cfg.Dial.Addr = l.w.addrOf(l.to)
	reconnect.Spawn(l.rt, owner, cfg)
}
