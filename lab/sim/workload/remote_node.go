package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/remoting"
)

// remote is the workload.
type remote struct {
	*Env
	ops     []Op
	begun   []bool
	cfg     remoting.Config
	named   bool             // nodes have names that are not addresses
	barred  string           // actor that Allow refuses; "": none
	stood   map[*postOp]bool // operations whose target has stood still
	ledger  oracle.Posts
	bounds  oracle.Bounds
	posts   map[uint64]*remotePost   // keyed by post number
	nodes   []*remoteNode            // per machine; nil: its process has not got that far
	blocked map[[2]int]time.Duration // per machine and refused machine
	upset   []bool                   // per machine: connections end
	active  time.Duration            // time of the last event
	judged  bool                     // the ledger is complete
	settled []bool                   // per machine: its node has returned everything
	starts  uint64
}

func newRemote(e *Env, ops []Op) *remote {
	n := len(e.Machines)
	w := &remote{
		Env: e, ops: ops, begun: make([]bool, len(ops)), posts: make(map[uint64]*remotePost), nodes: make([]*remoteNode, n),
		blocked: make(map[[2]int]time.Duration), stood: make(map[*postOp]bool), upset: make([]bool, n), settled: make([]bool, n),
	}
	w.ledger.Fail, w.bounds.Fail = e.failWorld, e.failWorld
	w.named, w.barred = e.Rand.IntN(3) == 0, oneOf(e.Rand, "", "", "", loopB, offB, solid)
	c := &w.cfg
	if w.named {
		c.Peers = 4 * n // few enough to use all of them
	}
	c.Queue, c.MaxMessage = oneOf(e.Rand, 0, 64<<10, 256<<10), 64<<10
	c.Overflow = oneOf(e.Rand, remoting.DeadLetter, remoting.Fail, remoting.Block)
	c.Patience = oneOf(e.Rand, 0, time.Second, 3*time.Second)
	c.ID.Credits = oneOf(e.Rand, 0, 2, 4)
	c.Dial.Timeout = oneOf(e.Rand, 0, time.Second)
	c.Backoff = reconnect.Backoff{First: 10 * time.Millisecond, Most: oneOf(e.Rand, 100*time.Millisecond, 2*time.Second), Stable: time.Second}
	c.Expose = remoting.Expose{
		Reach: []string{"loop-*", offA, offB, mailA, nobody},
		Watch: []string{"loop-*", "off-*", mailA, solid, nobody},
		Stop:  []string{loopB, "off-*", mailA, nobody},
		Spawn: []string{spawnKind, noKind},
	}
	return w
}

// isWatchable reports whether others may watch an actor.
func (w *remote) isWatchable(name string) bool { return name != hidden && name != w.barred }

// Start implements Workload.
func (w *remote) Start() {
	for m := range w.Machines {
		w.Env.Start(m, func(p *world.Process) { w.runNode(p, m) })
	}
}

// Done implements Workload.
func (w *remote) Done() bool { return w.areFinished(0) }

// Check implements Workload.
func (w *remote) Check() {}

// Killed implements Killer.
func (w *remote) Killed(p *world.Process) {
	for m, n := range w.nodes {
		if n != nil && n.p == p {
			n.life.Over(w.World.Now())
			w.nodes[m] = nil
		}
	}
}

// nodeName returns the name of a machine's node.
func (w *remote) nodeName(machine int) string {
	if w.named {
		return fmt.Sprintf("node-%d", machine)
	}
	return w.Addr(machine, 0)
}

// machineOfNode returns the machine of a node; -1: none.
func (w *remote) machineOfNode(name string) int {
	for m := range w.Machines {
		if w.nodeName(m) == name {
			return m
		}
	}
	return -1
}

// isUndisturbed reports whether nothing has disturbed the connection of two nodes. A third machine
// that stands still while it connects holds a pending request: if fewer of these are allowed than
// there are machines, it may exclude the others.
func (w *remote) isUndisturbed(a, b int) bool {
	if most := w.Config.Limits.PendingRequests; most > 0 && most < len(w.Machines) && w.Disturbed() {
		return false
	}
	for _, m := range []int{a, b} {
		if m < 0 || w.upset[m] || w.Disturbed(m) || w.Obstructed(m) {
			return false
		}
	}
	return true
}

// remoteNode is a life of a node, in a process.
type remoteNode struct {
	*crew
	w       *remote
	machine int
	name    string
	node    *remoting.Node
	life    *oracle.Life
	pids    map[place]*actor.PID     // of other nodes' actors
	alien   bool                     // knows the type that not all know
	asked   map[string][]*remotePost // per actor: it continues when the answer arrives
	leaving *leaveOp                 // requested shutdown
	gone    bool                     // it was shut down
}

// runNode runs the program of a machine with a node.
func (w *remote) runNode(p *world.Process, machine int) {
	c := w.newCrew(p)
	if c == nil {
		return
	}
	w.starts++
	me := &remoteNode{
		crew: c, w: w, machine: machine, name: w.nodeName(machine), pids: make(map[place]*actor.PID),
		asked: make(map[string][]*remotePost), alien: machine%2 == 0,
	}
	if !me.startNode() {
		return
	}
	w.nodes[machine] = me
	for _, name := range []string{loopA, loopB, offA, offB, mailA, hidden, solid} {
		me.spawnActor(name)
	}
	for n, op := range w.ops {
		if at, own := startOn(machine, op); own && !w.begun[n] {
			me.performHere(n, at, op)
		}
	}
	for m := range w.Machines {
		if m != machine {
			me.startGoroutine(func() { me.reachNode(m) })
		}
	}
	me.waitUntil(20*time.Millisecond, func() bool {
		me.sampleBounds()
		w.completeLedger()
		return me.leaving != nil || w.judged
	})
	if me.leaving != nil {
		me.restartNode()
		return
	}
	me.repeatAdmits()
	w.awaitReleased(p, me.rt, me.listHeld)
	w.settled[machine] = true
	me.waitUntil(20*time.Millisecond, func() bool { return p.Dead() || !slices.Contains(w.settled, false) })
	me.shutDownLast()
	w.Programs[machine].Finished = true
}

// performHere performs an operation at its time, unless another node of the machine does.
func (me *remoteNode) performHere(n int, at time.Duration, op Op) {
	w := me.w
	me.p.Go(func() {
		me.p.Sleep(beginning + at - w.World.Now())
		if me.leaving != nil || w.begun[n] || w.nodes[me.machine] != me {
			return // left to the machine's next node
		}
		w.begun[n] = true
		me.busy++
		me.performOp(op)
		me.busy--
	})
}

// startNode starts the node. While memory or descriptors are scarce it tries again.
func (me *remoteNode) startNode() (ok bool) {
	w := me.w
	cfg := w.cfg
	cfg.Name, cfg.Listen, cfg.Incarnation = me.name, w.Addr(me.machine, 0), w.starts
	if w.starts%2 == 0 {
		cfg.Incarnation = 0
	}
	if w.named {
		cfg.Resolve = me.resolveName
	}
	cfg.Admit, cfg.Codec = me.admitPeer, me.newCodec()
	cfg.Kinds = map[string]*actor.Props{spawnKind: me.actorProps(""), deniedKind: me.actorProps("")}
	if w.barred != "" {
		cfg.Allow = me.allowAccess
	}
	for {
		var err error
		if me.node, err = remoting.Start(me.rt, cfg); err == nil {
			break
		}
		if me.p.Context().Err() != nil {
			return false
		}
		if _, calm := w.Calm(); calm || !w.Disturbed() {
			w.failWorld("%s: the node does not start: %v", me.p.Name(), err)
			return false
		}
		me.p.Sleep(time.Second)
	}
	now := w.World.Now()
	me.life = w.ledger.Life(me.name)
	for _, name := range []string{loopA, loopB, offA, offB, mailA, nobody} {
		me.life.Expose(now, name, name != w.barred)
	}
	me.p.System().EventStream.Subscribe(me.handleEvent)
	return true
}

// resolveName implements the nodes' Resolve. Sometimes it fails, panics, or is too slow.
func (me *remoteNode) resolveName(ctx context.Context, name string) (string, error) {
	me.p.Sleep(me.w.drawPause())
	m := me.w.machineOfNode(name)
	if _, calm := me.w.Calm(); m < 0 || !calm && me.w.Disturbed(me.machine) {
		switch x := me.w.Rand.IntN(16); {
		case m < 0 || x < 2:
			return "", errors.New("nobody knows")
		case x == 2:
			panic("a Resolve that panics")
		case x == 3:
			runtime.Goexit()
		case x == 4: // beyond the time limit of the attempt
			me.p.Sleep(12 * time.Second)
		}
	}
	return me.w.Addr(m, 0), ctx.Err()
}

// drawPause draws the duration of an action off the loops.
func (w *remote) drawPause() time.Duration { return time.Duration(w.Rand.IntN(20)) * time.Millisecond }

// admitPeer implements the nodes' Admit.
func (me *remoteNode) admitPeer(who remoting.Peer) error {
	me.p.Sleep(me.w.drawPause())
	if me.w.World.Now() < me.w.blocked[[2]int{me.machine, me.w.machineOfNode(who.Name)}] {
		return errors.New("it is not wanted")
	}
	return nil
}

// allowAccess implements the nodes' Allow.
func (me *remoteNode) allowAccess(_ remoting.Peer, a remoting.Access, name string) error {
	switch {
	case name != me.w.barred:
		return nil
	case a == remoting.Watch:
		panic(errPlanned)
	}
	return errors.New("it is barred")
}

// performOp performs an operation.
func (me *remoteNode) performOp(op Op) {
	switch o := op.(type) {
	case *postOp:
		me.beginPost(o)
	case *watchOp:
		me.p.System().Root.Send(me.ownPID(o.watcher), o)
	case *haltOp:
		me.stopActor(o)
	case *spawnOp:
		me.spawnThere(o)
	case *exposeOp:
		me.exposeActor(o)
	case *leaveOp:
		me.leaving, me.w.upset[me.machine] = o, true
	case *blockOp:
		me.blockPeer(o)
	}
}

// ownPID returns the PID of an actor of this node.
func (me *remoteNode) ownPID(name string) *actor.PID { return actor.NewPID(me.name, name) }

// remotePID returns the PID of an actor of another node. A PID caches its process, so some are
// reused.
func (me *remoteNode) remotePID(p place) *actor.PID {
	if pid := me.pids[p]; pid != nil && me.w.Rand.IntN(2) == 0 {
		return pid
	}
	me.pids[p] = actor.NewPID(me.w.nodeName(p.machine), p.name)
	return me.pids[p]
}

// ledgerPlace returns an actor's name in the ledger.
func (w *remote) ledgerPlace(p place) oracle.Place {
	return oracle.Place{Node: w.nodeName(p.machine), Name: p.name}
}

// placeOf returns the same for a PID; for nil it is empty.
func placeOf(pid *actor.PID) oracle.Place {
	return oracle.Place{Node: pid.GetAddress(), Name: pid.GetId()}
}

func (me *remoteNode) stopActor(o *haltOp) {
	pid := me.remotePID(place{o.to, o.target})
	if o.poison {
		me.p.System().Root.Poison(pid)
	} else {
		me.p.System().Root.Stop(pid)
	}
}

func (me *remoteNode) exposeActor(o *exposeOp) {
	rule := remoting.Expose{Reach: []string{offB}}
	if o.on {
		me.life.Expose(me.w.World.Now(), offB, me.w.barred != offB)
		me.node.Expose(rule)
		return
	}
	me.node.Conceal(rule)
	me.life.Expose(me.w.World.Now(), offB, false)
}

func (me *remoteNode) blockPeer(o *blockOp) {
	me.w.blocked[[2]int{o.machine, o.who}] = me.w.World.Now() + o.d
	me.w.upset[o.machine] = true
}

// awaitsAnswers reports whether actors wait for answers.
func (me *remoteNode) awaitsAnswers() bool {
	for _, all := range me.asked {
		for _, p := range all {
			if !p.Fated() {
				return true
			}
		}
	}
	return false
}

// reachNode sends requests to an actor of another node after the last fault, until one is answered.
func (me *remoteNode) reachNode(other int) {
	w := me.w
	since, calm := w.Calm()
	for ; !calm; since, calm = w.Calm() {
		me.p.Sleep(500 * time.Millisecond)
		if me.leaving != nil {
			return
		}
	}
	o := &postOp{start: start{machine: me.machine}, to: other, target: loopA, how: sendFuture, n: 1, size: 32, timeout: 3 * time.Second}
	for me.leaving == nil && !w.judged {
		if w.World.Now()-since > w.Patience-30*time.Second {
			w.failWorld("%s does not reach %s, although no more faults happen", me.name, w.nodeName(other))
		}
		p, f := me.requestAnswer(o, me.p.System().Root, fmt.Sprintf("goroutine %p", o))
		res, err := remoting.Result(f)
		me.p.Sleep(0)
		if me.handleAnswer(p, res, err); err == nil {
			return
		}
		me.p.Sleep(500 * time.Millisecond)
	}
}

// recordEvent records an event, and reports whether it counts.
func (me *remoteNode) recordEvent() bool {
	if me.w.judged || !me.life.Lives() {
		return false
	}
	me.w.active = me.w.World.Now()
	return true
}

// restartNode shuts the node down in the middle, and starts the machine's next one.
func (me *remoteNode) restartNode() {
	w := me.w
	ctx, cancel := context.WithTimeout(context.Background(), me.leaving.timeout)
	defer cancel()
	suspended := w.World.Suspended()
	err := me.node.Shutdown(ctx)
	w.World.Trace("%s: %s: shut down: %v", w.Name, me.p.Name(), err != nil)
	me.gone = true
	if err == nil || w.World.Suspended() == suspended { // otherwise its time may have ended early
		me.nothingLeft(err)
	}
	me.waitUntil(20*time.Millisecond, me.isIdle) // its futures were answered
	// without a deadline, because the clock may jump
	if err := me.rt.Shutdown(context.Background()); err != nil && me.p.Context().Err() == nil {
		w.failWorld("%s: Shutdown of the runtime: %v", me.p.Name(), err)
	}
	if now := w.World.Now(); err != nil {
		me.life.Over(now)
	} else {
		me.life.Ended(now)
	}
	if w.nodes[me.machine] == me {
		w.nodes[me.machine] = nil
		w.Programs[me.machine].Restart(w.Env)
	}
}

// admits is the maximum number of concurrent Admit calls of a node for each of its Config.Peers.
const admits = 4

// repeatAdmits makes a node with a small Config.Peers repeat its Admit calls more often than the
// limit on concurrent ones: each slot that was used since the node's start must be free again. It
// is called when nothing is under way.
func (me *remoteNode) repeatAdmits() {
	w := me.w
	for me.isBlocking() {
		me.p.Sleep(time.Second)
	}
	before := me.countConnected()
	if w.cfg.Peers == 0 || before == 0 {
		return
	}
	for range admits*w.cfg.Peers/before + 1 {
		me.node.Readmit()
		me.p.Sleep(100 * time.Millisecond) // longer than a call takes
	}
	if n := me.countConnected(); n < before && !me.p.Dead() && me.p.Context().Err() == nil {
		w.failWorld("%v: %s is connected to %d nodes of %d, after its Admit has admitted all of them many times", w.World.Now(), me.name, n, before)
	}
}

// isBlocking reports whether the node's Admit refuses others.
func (me *remoteNode) isBlocking() bool {
	for m := range me.w.Machines {
		if me.w.World.Now() < me.w.blocked[[2]int{me.machine, m}] {
			return true
		}
	}
	return false
}

// countConnected returns how many nodes this one is connected to.
func (me *remoteNode) countConnected() (n int) {
	for _, i := range me.node.Peers() {
		if i.Connected {
			n++
		}
	}
	return n
}

// shutDownLast shuts the node down when nothing is under way.
func (me *remoteNode) shutDownLast() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := me.node.Shutdown(ctx)
	if err != nil && me.p.Context().Err() == nil {
		me.w.failWorld("%s: Shutdown: %v", me.p.Name(), err)
	}
	me.gone = true
	me.nothingLeft(err)
}
