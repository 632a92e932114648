package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/remoting"
)

// remote is the workload.
type remote struct {
	*Env
	ops      []Op
	begun    []bool
	cfg      remoting.Config
	named    bool             // nodes have names that are not addresses
	barred   string           // actor that Allow refuses; "": none
	stood    map[*postOp]bool // operations whose target has stood still
	ledger   oracle.Posts
	bounds   oracle.Bounds
	posts    map[uint64]*remotePost   // keyed by post number
	nodes    []*remoteNode            // per machine; nil: its process has not got that far
	blocked  map[[2]int]time.Duration // per machine and refused machine
	upset    []bool                   // per machine: connections end
	active   time.Duration            // time of the last event
	judged   bool                     // the ledger is complete
	settled  []bool                   // per machine: its node has returned everything
	left     []bool                   // per machine
	starts   uint64
	programs []*Program
}

func newRemote(e *Env, ops []Op) *remote {
	n := len(e.Machines)
	w := &remote{
		Env: e, ops: ops, begun: make([]bool, len(ops)), posts: make(map[uint64]*remotePost), nodes: make([]*remoteNode, n),
		blocked: make(map[[2]int]time.Duration), stood: make(map[*postOp]bool), upset: make([]bool, n), settled: make([]bool, n), left: make([]bool, n),
	}
	w.ledger.Fail, w.bounds.Fail = e.fail, e.fail
	w.named, w.barred = e.Rand.IntN(3) == 0, one(e, "", "", "", loopB, offB, solid)
	c := &w.cfg
	if w.named {
		c.Peers = 4 * n // few enough to use all of them
	}
	c.Queue, c.MaxMessage = one(e, 0, 64<<10, 256<<10), 64<<10
	c.Overflow = one(e, remoting.DeadLetter, remoting.Fail, remoting.Block)
	c.Patience = one(e, 0, time.Second, 3*time.Second)
	c.ID.Credits = one(e, 0, 2, 4)
	c.Dial.Timeout = one(e, 0, time.Second)
	c.Backoff = reconnect.Backoff{First: 10 * time.Millisecond, Most: one(e, 100*time.Millisecond, 2*time.Second), Stable: time.Second}
	c.Expose = remoting.Expose{
		Reach: []string{"loop-*", offA, offB, mailA, nobody},
		Watch: []string{"loop-*", "off-*", mailA, solid, nobody},
		Stop:  []string{loopB, "off-*", mailA, nobody},
		Spawn: []string{spawnKind, noKind},
	}
	return w
}

// watchable reports whether others may watch an actor.
func (w *remote) watchable(name string) bool { return name != hidden && name != w.barred }

// Start implements Workload.
func (w *remote) Start() {
	for m := range w.Machines {
		w.programs = append(w.programs, w.Env.Start(m, func(p *world.Process) { w.run(p, m) }))
	}
}

// Done implements Workload.
func (w *remote) Done() bool { return !slices.Contains(w.left, false) }

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

// name returns the name of a machine's node.
func (w *remote) name(machine int) string {
	if w.named {
		return fmt.Sprintf("node-%d", machine)
	}
	return w.Addr(machine, 0)
}

// machine returns the machine of a node; -1: none.
func (w *remote) machine(name string) int {
	for m := range w.Machines {
		if w.name(m) == name {
			return m
		}
	}
	return -1
}

// quiet reports whether nothing has disturbed the connection of two nodes. A third machine that
// stands still while it connects holds a pending request: if fewer of these are allowed than there
// are machines, it may exclude the others.
func (w *remote) quiet(a, b int) bool {
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
	crew
	w       *remote
	rt      *rdma.Runtime
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

// run is the program of a machine.
func (w *remote) run(p *world.Process, machine int) {
	if w.left[machine] {
		return
	}
	rt := w.open(p)
	if rt == nil {
		return
	}
	w.starts++
	me := &remoteNode{
		crew: crew{p: p}, w: w, rt: rt, machine: machine, name: w.name(machine), pids: make(map[place]*actor.PID),
		asked: make(map[string][]*remotePost), alien: machine%2 == 0,
	}
	if !me.start() {
		return
	}
	w.nodes[machine] = me
	for _, name := range []string{loopA, loopB, offA, offB, mailA, hidden, solid} {
		me.spawn(name)
	}
	for n, op := range w.ops {
		if at, do := me.due(op); do != nil && !w.begun[n] {
			me.later(n, at, do)
		}
	}
	for m := range w.Machines {
		if m != machine {
			me.run(func() { me.reach(m) })
		}
	}
	me.until(20*time.Millisecond, func() bool {
		me.sample()
		w.judge()
		return me.leaving != nil || w.judged
	})
	if me.leaving != nil {
		me.leave()
		return
	}
	me.readmit()
	w.settle(p, rt, me.held)
	w.settled[machine] = true
	me.until(20*time.Millisecond, func() bool { return p.Dead() || !slices.Contains(w.settled, false) })
	me.last()
	w.left[machine] = true
}

// later performs an operation at its time.
func (me *remoteNode) later(n int, at time.Duration, do func()) {
	w := me.w
	me.p.Go(func() {
		me.p.Sleep(beginning + at - w.World.Now())
		if me.leaving != nil || w.begun[n] || w.nodes[me.machine] != me {
			return // left to the machine's next node
		}
		w.begun[n] = true
		me.busy++
		do()
		me.busy--
	})
}

// start starts the node. While memory or descriptors are scarce it tries again.
func (me *remoteNode) start() (ok bool) {
	w := me.w
	cfg := w.cfg
	cfg.Name, cfg.Listen, cfg.Incarnation = me.name, w.Addr(me.machine, 0), w.starts
	if w.starts%2 == 0 {
		cfg.Incarnation = 0
	}
	if w.named {
		cfg.Resolve = me.resolve
	}
	cfg.Admit, cfg.Codec = me.admit, me.codec()
	cfg.Kinds = map[string]*actor.Props{spawnKind: me.props(""), deniedKind: me.props("")}
	if w.barred != "" {
		cfg.Allow = me.allow
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
			w.fail("%s: the node does not start: %v", me.p.Name(), err)
			return false
		}
		me.p.Sleep(time.Second)
	}
	now := w.World.Now()
	me.life = w.ledger.Life(me.name)
	for _, name := range []string{loopA, loopB, offA, offB, mailA, nobody} {
		me.life.Expose(now, name, name != w.barred)
	}
	me.p.System().EventStream.Subscribe(me.event)
	return true
}

// resolve is the nodes' Resolve. Sometimes it fails, panics, or does not return in time.
func (me *remoteNode) resolve(ctx context.Context, name string) (string, error) {
	me.p.Sleep(me.w.pause())
	m := me.w.machine(name)
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

// pause draws the duration of an action off the loops.
func (w *remote) pause() time.Duration { return time.Duration(w.Rand.IntN(20)) * time.Millisecond }

// admit is the nodes' Admit.
func (me *remoteNode) admit(who remoting.Peer) error {
	me.p.Sleep(me.w.pause())
	if me.w.World.Now() < me.w.blocked[[2]int{me.machine, me.w.machine(who.Name)}] {
		return errors.New("it is not wanted")
	}
	return nil
}

// allow is the nodes' Allow.
func (me *remoteNode) allow(_ remoting.Peer, a remoting.Access, name string) error {
	switch {
	case name != me.w.barred:
		return nil
	case a == remoting.Watch:
		panic(errPlanned)
	}
	return errors.New("it is barred")
}

// due returns when and how a node performs an operation; nil: another node does.
func (me *remoteNode) due(op Op) (at time.Duration, do func()) {
	root := me.p.System().Root
	switch o := op.(type) {
	case *postOp:
		if o.from == me.machine {
			return o.at, func() { me.begin(o) }
		}
	case *watchOp:
		if o.from == me.machine {
			return o.at, func() { root.Send(me.own(o.watcher), o) }
		}
	case *haltOp:
		if o.from == me.machine {
			return o.at, func() { me.halt(o) }
		}
	case *spawnOp:
		if o.from == me.machine {
			return o.at, func() { me.spawnThere(o) }
		}
	case *exposeOp:
		if o.machine == me.machine {
			return o.at, func() { me.expose(o) }
		}
	case *leaveOp:
		if o.machine == me.machine {
			return o.at, func() { me.leaving, me.w.upset[me.machine] = o, true }
		}
	case *blockOp:
		if o.machine == me.machine {
			return o.at, func() { me.block(o) }
		}
	}
	return 0, nil
}

// own returns the PID of an actor of this node.
func (me *remoteNode) own(name string) *actor.PID { return actor.NewPID(me.name, name) }

// pid returns the PID of an actor of another node. A PID caches its process, so some are reused.
func (me *remoteNode) pid(p place) *actor.PID {
	if pid := me.pids[p]; pid != nil && me.w.Rand.IntN(2) == 0 {
		return pid
	}
	me.pids[p] = actor.NewPID(me.w.name(p.machine), p.name)
	return me.pids[p]
}

// place returns an actor's name in the ledger.
func (w *remote) place(p place) oracle.Place {
	return oracle.Place{Node: w.name(p.machine), Name: p.name}
}

// placeOf returns the same for a PID; for nil it is empty.
func placeOf(pid *actor.PID) oracle.Place {
	return oracle.Place{Node: pid.GetAddress(), Name: pid.GetId()}
}

func (me *remoteNode) halt(o *haltOp) {
	pid := me.pid(place{o.to, o.target})
	if o.poison {
		me.p.System().Root.Poison(pid)
	} else {
		me.p.System().Root.Stop(pid)
	}
}

func (me *remoteNode) expose(o *exposeOp) {
	rule := remoting.Expose{Reach: []string{offB}}
	if o.on {
		me.life.Expose(me.w.World.Now(), offB, me.w.barred != offB)
		me.node.Expose(rule)
		return
	}
	me.node.Conceal(rule)
	me.life.Expose(me.w.World.Now(), offB, false)
}

func (me *remoteNode) block(o *blockOp) {
	me.w.blocked[[2]int{o.machine, o.who}] = me.w.World.Now() + o.d
	me.w.upset[o.machine] = true
}

// asks reports whether actors wait for answers.
func (me *remoteNode) asks() bool {
	for _, all := range me.asked {
		for _, p := range all {
			if !p.Fated() {
				return true
			}
		}
	}
	return false
}

// reach sends requests to an actor of another node after the last fault, until one is answered.
func (me *remoteNode) reach(other int) {
	w := me.w
	since, calm := w.Calm()
	for ; !calm; since, calm = w.Calm() {
		me.p.Sleep(500 * time.Millisecond)
		if me.leaving != nil {
			return
		}
	}
	o := &postOp{from: me.machine, to: other, target: loopA, how: sendFuture, n: 1, size: 32, timeout: 3 * time.Second}
	for me.leaving == nil && !w.judged {
		if w.World.Now()-since > w.Patience-30*time.Second {
			w.fail("%s does not reach %s, although no more faults happen", me.name, w.name(other))
		}
		p, f := me.request(o, me.p.System().Root, fmt.Sprintf("goroutine %p", o))
		res, err := remoting.Result(f)
		me.p.Sleep(0)
		if me.answered(p, res, err); err == nil {
			return
		}
		me.p.Sleep(500 * time.Millisecond)
	}
}

// happens records an event, and reports whether it counts.
func (me *remoteNode) happens() bool {
	if me.w.judged || !me.life.Lives() {
		return false
	}
	me.w.active = me.w.World.Now()
	return true
}

// leave shuts the node down in the middle, and starts the machine's next one.
func (me *remoteNode) leave() {
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
	me.until(20*time.Millisecond, me.idle) // its futures were answered
	// without a deadline, because the clock may jump
	if err := me.rt.Shutdown(context.Background()); err != nil && me.p.Context().Err() == nil {
		w.fail("%s: Shutdown of the runtime: %v", me.p.Name(), err)
	}
	if now := w.World.Now(); err != nil {
		me.life.Over(now)
	} else {
		me.life.Ended(now)
	}
	if w.nodes[me.machine] == me {
		w.nodes[me.machine] = nil
		w.programs[me.machine].Restart(w.Env)
	}
}

// admits is the maximum number of concurrent Admit calls of a node for each of its Config.Peers.
const admits = 4

// readmit makes a node with a small Config.Peers repeat its Admit calls more often than the limit
// on concurrent ones: each slot that was used since the node's start must be free again. It is
// called when nothing is under way.
func (me *remoteNode) readmit() {
	w := me.w
	for me.blocks() {
		me.p.Sleep(time.Second)
	}
	before := me.connected()
	if w.cfg.Peers == 0 || before == 0 {
		return
	}
	for range admits*w.cfg.Peers/before + 1 {
		me.node.Readmit()
		me.p.Sleep(100 * time.Millisecond) // longer than a call takes
	}
	if n := me.connected(); n < before && !me.p.Dead() && me.p.Context().Err() == nil {
		w.fail("%v: %s is connected to %d nodes of %d, after its Admit has admitted all of them many times", w.World.Now(), me.name, n, before)
	}
}

// blocks reports whether the node's Admit refuses others.
func (me *remoteNode) blocks() bool {
	for m := range me.w.Machines {
		if me.w.World.Now() < me.w.blocked[[2]int{me.machine, m}] {
			return true
		}
	}
	return false
}

// connected returns how many nodes this one is connected to.
func (me *remoteNode) connected() (n int) {
	for _, i := range me.node.Peers() {
		if i.Connected {
			n++
		}
	}
	return n
}

// last shuts the node down when nothing is under way.
func (me *remoteNode) last() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := me.node.Shutdown(ctx)
	if err != nil && me.p.Context().Err() == nil {
		me.w.fail("%s: Shutdown: %v", me.p.Name(), err)
	}
	me.gone = true
	me.nothingLeft(err)
}
