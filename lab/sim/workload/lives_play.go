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
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/rpc"
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
	waits   int // goroutines that have not returned
	owners  []*lifeOwner
	asked   []*lifeAsked
	links   []*lifeLinked
	took    time.Duration // of the first dial that was waited for
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

// lifeServers is the port of the first life's rpc server.
const lifeServers = 50

// addrOf returns the address of a life's listener, or, with lifeServers, of its server.
func (w *lives) addrOf(n int) string {
	for _, l := range w.all {
		if l.number == n%lifeServers {
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
	if !l.has(lifeTalk) { // no peer must wait for a loop that is so busy
		l.createListener()
	}
	if !l.has(lifeTalk) && !l.has(lifeRedial) {
		l.runReturning(l.startServer)
	}
	for range l.dials {
		switch {
		case l.has(lifeRedial):
			l.spawnOwner(&lifeOwner{redial: true}, false)
		case l.has(lifeAsk):
			l.runReturning(l.askAndCancel)
		case l.has(lifeTwice):
			l.sendTwoConnects()
		case l.has(lifeFlood):
			l.runReturning(l.floodStopping)
		case l.has(lifeCall):
			l.runReturning(l.useClient)
		case l.has(lifeLink):
			l.startLink()
		default:
			l.spawnOwner(&lifeOwner{redial: true}, false)
		}
	}
	l.p.Sleep(l.span)
	l.shutDown()
}

func (l *life) has(verb string) bool { return slices.Contains(l.lifeOp.has, verb) }

// runReturning runs fn on a goroutine that must return.
func (l *life) runReturning(fn func()) {
	l.waits++
	l.p.Go(func() {
		defer func() { l.waits-- }()
		fn()
	})
}

// shutDown shuts the life's runtime down.
func (l *life) shutDown() {
	ctx := context.Background()
	if l.cut > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.cut)
		defer cancel()
	}
	l.closing = true
	if l.has(lifeTalk) {
		l.startTalk()
	}
	if l.has(lifeCall) {
		l.runReturning(l.useClient) // it dials while the runtime shuts down
	}
	l.w.World.Trace("%s: runtime %d shuts down", l.w.Name, l.number)
	connected := slices.DeleteFunc(slices.Clone(l.links), func(k *lifeLinked) bool { return !k.up })
	begun := l.w.World.Now()
	err := l.rt.Shutdown(ctx)
	took := l.w.World.Now() - begun
	l.w.World.Trace("%s: runtime %d has shut down, all of it: %v", l.w.Name, l.number, err == nil)
	if took > lifeEnds && !l.w.disturbedAtAll() {
		l.w.World.Fail("%s: runtime %d took %v to shut down, and nothing was in its way", l.w.Name, l.number, took)
	}
	l.ended = true
	if l.has(lifeCall) {
		l.runReturning(l.useClient) // in vain
	}
	l.p.Sleep(time.Second) // owners off the loops run on other goroutines
	if l.wasKilled() {
		return
	}
	for _, k := range connected {
		if !k.closed && !l.w.disturbedAtAll() {
			l.w.World.Fail("%s: runtime %d has shut down, and an owner has got no Closed of its reconnecting actor", l.w.Name, l.number)
		}
	}
	for _, o := range l.owners {
		for id := range o.ids {
			l.w.World.Fail("%s: runtime %d has shut down, and %s has got no Closed of %s", l.w.Name, l.number, o.name, id)
		}
	}
}

// wasKilled reports whether the process was killed. Its goroutines continue at the end of the
// world, without their state.
func (l *life) wasKilled() bool { return l.p.Context().Err() != nil }

// lifeEnds is how long a Shutdown may take when peers and network work. It does not wait for peers
// to close.
const lifeEnds = 5 * time.Second

// disturbedAtAll reports whether a fault has hit any machine.
func (w *lives) disturbedAtAll() bool {
	for m := range w.Machines {
		if w.Disturbed(m) {
			return true
		}
	}
	return false
}

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
	return l.ended && l.waits == 0
}

// Check implements Workload.
func (w *lives) Check() {
	for _, l := range w.all {
		if l.p.Dead() {
			continue
		}
		for _, a := range l.asked {
			if a.answers != 1 {
				w.World.Fail("%s: runtime %d: %s got %d answers", w.Name, l.number, a.what, a.answers)
			}
		}
	}
}

// lifeOwner owns identifiers: a listener with its connections, or consecutive ones that dial.
type lifeOwner struct {
	l      *life
	name   string
	dials  bool
	redial bool
	ids    map[string]bool // made, and not closed
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
		l.w.World.Fail("%s: runtime %d: %s has got Closed of %s twice", l.w.Name, l.number, o.name, id)
	}
	delete(o.ids, id)
	if !o.redial || l.closing {
		return
	}
	if errors.Is(m.Err, unix.EMFILE) && l.has(lifeRedial) && !l.sharesRoom() {
		l.w.World.Fail("%s: runtime %d: %s has no room for its only identifier: %v", l.w.Name, l.number, o.name, m.Err)
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

// askAndCancel dials on a goroutine, and gives up when the answer is about to arrive. The abandoned
// identifier must disappear.
func (l *life) askAndCancel() {
	for range 20 {
		if l.closing {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		if l.took > 0 {
			ctx, cancel = context.WithTimeout(ctx, l.took+time.Duration(l.w.Rand.Int64N(int64(l.took)/4+1)-int64(l.took)/8))
		}
		o := &lifeOwner{ids: map[string]bool{}, l: l, name: "nobody"}
		id := l.rt.CreateID(nil)
		begun := l.w.World.Now()
		_, err := rdma.Ask[*rdma.Established](ctx, l.rt, id, &rdma.Dial{Addr: l.w.addrOf(l.to)})
		cancel()
		if err == nil && l.took == 0 {
			l.took = l.w.World.Now() - begun
		}
		if err == nil {
			l.rt.System().Root.Send(id, &rdma.DestroyID{})
		}
		o.requireGone(id, err)
		l.p.Sleep(l.pause + time.Millisecond)
	}
}

// requireGone fails the world if an identifier still exists after a while.
func (o *lifeOwner) requireGone(id *actor.PID, why error) {
	l := o.l
	for range 20 {
		l.p.Sleep(time.Second)
		if l.closing || l.wasKilled() || !slices.ContainsFunc(l.rt.Inspect(), func(i rdma.IDInfo) bool { return i.PID.Equal(id) }) {
			return
		}
	}
	l.w.World.Fail("%s: runtime %d: a dial was given up (%v), and its identifier is still there", l.w.Name, l.number, why)
}

// lifeAsked is the sender of a command.
type lifeAsked struct {
	what    string
	answers int
}

// SendUserMessage implements actor.Process.
func (a *lifeAsked) SendUserMessage(*actor.PID, any) { a.answers++ }

// SendSystemMessage implements actor.Process.
func (a *lifeAsked) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (a *lifeAsked) Stop(*actor.PID) {}

// newAsker creates an address whose answers are counted.
func (l *life) newAsker(what string) *actor.PID {
	a := &lifeAsked{what: what}
	l.asked = append(l.asked, a)
	pid, _ := l.rt.System().ProcessRegistry.Add(a, fmt.Sprintf("asker%d.%d", l.number, len(l.asked)))
	return pid
}

// sendTwoConnects sends one Connect from two senders.
func (l *life) sendTwoConnects() {
	root := l.rt.System().Root
	id := l.rt.CreateID(nil)
	to, err := rdma.ParseAddr(l.w.addrOf(l.to))
	if err != nil {
		panic(err)
	}
	root.RequestWithCustomSender(id, &cmid.ResolveAddr{Dst: to}, l.newAsker("ResolveAddr"))
	l.runReturning(func() {
		l.p.Sleep(100 * time.Millisecond)
		root.RequestWithCustomSender(id, &cmid.ResolveRoute{}, l.newAsker("ResolveRoute"))
		l.p.Sleep(100 * time.Millisecond)
		c := &rdma.Connect{}
		root.RequestWithCustomSender(id, c, l.newAsker("the first who has sent a Connect"))
		root.RequestWithCustomSender(id, c, l.newAsker("the second who has sent a Connect"))
		second := l.asked[len(l.asked)-1]
		l.p.Sleep(2 * time.Second)
		if second.answers == 0 && !l.closing && !l.w.disturbedAtAll() {
			l.w.World.Fail("%s: runtime %d: %s is answered by nobody", l.w.Name, l.number, second.what)
		}
	})
}

// floodStopping sends to identifiers whose owners stop.
func (l *life) floodStopping() {
	root := l.rt.System().Root
	for range 10 {
		if l.closing {
			return
		}
		owner := root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, l.rt.OffLoop()))
		id := l.rt.CreateID(owner)
		root.RequestWithCustomSender(id, &rdma.Dial{Addr: l.w.addrOf(l.to)}, owner)
		l.p.Sleep(l.pause)
		root.Stop(owner)
		l.p.Sleep(0) // others may or may not continue
		for range 300 {
			root.RequestWithCustomSender(id, rdma.NewSend([]byte("x")), owner)
		}
		for range 2100 {
			root.RequestWithCustomSender(id, &rdma.Grant{}, owner)
		}
	}
}

// startTalk starts two actors that answer one another forever.
func (l *life) startTalk() {
	root := l.rt.System().Root
	answer := func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); ok {
			ctx.Request(ctx.Sender(), "and you?")
		}
	}
	a := root.Spawn(actor.PropsFromFunc(answer, l.rt.OnLoop()))
	b := root.Spawn(actor.PropsFromFunc(answer, l.rt.OnLoop()))
	root.RequestWithCustomSender(a, "how are you?", b)
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

// startServer starts a server of package rpc.
func (l *life) startServer() {
	if _, err := rpc.NewServer(l.rt).Listen(context.Background(), l.w.addrOf(l.number+lifeServers)); err != nil {
		l.w.World.Trace("%s: runtime %d: no server", l.w.Name, l.number)
	}
}

// useClient uses a client that outlives its runtime.
func (l *life) useClient() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := rpc.Dial(ctx, l.rt, l.w.addrOf(l.to+lifeServers))
	if err != nil {
		l.w.World.Trace("%s: runtime %d: no client", l.w.Name, l.number)
		return
	}
	for !l.ended {
		l.p.Sleep(l.rest + time.Millisecond)
	}
	c.Close()
}
