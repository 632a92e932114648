package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/states"
)

// connections is the workload.
type connections struct {
	e     *Env
	hosts []*connHost
	conns map[int]*conn
	order []*conn

	ids      oracle.Identifiers
	messages oracle.Messages
	grants   oracle.Grants
	isolated oracle.Isolation
	bounds   oracle.Bounds
	floor    oracle.Isolation // of innocent connections, which need only the reserved memory
	checked  time.Duration    // when the isolation was last judged

	writes  int
	stray   bool // identifiers may dial unplanned connections
	late    bool // the outstanding events were traced
	closing bool // everything was answered, and the runtimes are being shut down
	open    int  // runtimes that are not shut down yet
	empties bool // the programs close everything before
}

func newConnections(e *Env, ops []Op) Workload {
	w := &connections{e: e, conns: make(map[int]*conn)}
	fail := e.failWorld
	w.ids.Fail, w.messages.Fail, w.grants.Fail, w.bounds.Fail = fail, fail, fail, fail
	w.ids.Secured = e.Security.Secured()
	w.isolated = oracle.Isolation{Fail: fail, Within: e.Patience}
	w.floor = oracle.Isolation{Fail: fail, Within: innocentWithin}
	for i := range e.Machines {
		w.hosts = append(w.hosts, &connHost{w: w, machine: i})
	}
	for _, op := range ops {
		op := op.(connOp)
		if op.limits != nil {
			op.limits.applyTo(e)
		}
		h := w.hosts[op.machine]
		h.ops = append(h.ops, op)
		if op.verb == connDial {
			c := newConn(w, op)
			w.conns[op.conn] = c
			w.order = append(w.order, c)
		}
	}
	return w
}

func (w *connections) now() time.Duration { return w.e.World.Now() }

// idFlavor returns the identifiers' flavor.
func (w *connections) idFlavor() states.Flavor {
	if w.e.World.Kind() == world.TwinSoftRoCE {
		return 0
	}
	return states.IWARP
}

// Start implements Workload.
func (w *connections) Start() {
	for _, h := range w.hosts {
		w.e.Start(h.machine, h.main)
	}
}

// Done implements Workload.
func (w *connections) Done() bool {
	now := w.now()
	if now-w.checked > time.Second {
		w.checked = now
		for _, c := range w.order {
			c.excuseFaults()
		}
		w.isolated.Check(now)
		for _, h := range w.hosts {
			if h.p != nil {
				h.dues.judgeWaits()
			}
		}
		w.floor.Check(now)
	}
	for _, h := range w.hosts {
		if h.p == nil || h.next < len(h.ops) || *h.busy > 0 {
			return false
		}
	}
	if w.closing {
		return w.open == 0
	}
	since, calm := w.e.Calm()
	switch left := w.listOutstanding(); {
	case !calm:
	case len(left) == 0:
		w.shutDownAll()
	case !w.late && now-since > w.e.Patience/2:
		w.late = true
		w.e.World.Trace("%s waits for %q", w.e.Name, left)
	}
	return false
}

// shutDownAll shuts the runtimes down.
func (w *connections) shutDownAll() {
	w.closing = true
	w.isolated.Check(w.now())
	for _, c := range w.order {
		c.ending = true
		c.excuseFaults()
	}
	w.open, w.empties = len(w.hosts), w.e.Rand.IntN(2) == 0
	// as a separate step: Done must not start anything
	w.e.World.After(0, w.e.Name+" shuts down", func() {
		for _, h := range w.hosts {
			h.p.Go(h.shutDown)
		}
	})
}

// shutDown shuts the host's runtime down.
func (h *connHost) shutDown() {
	h.p.Sleep(rest)
	h.judgeIdle()
	if h.w.empties {
		h.closeIDs()
	}
	for slices.ContainsFunc(h.w.hosts, (*connHost).mayRetain) {
		h.p.Sleep(time.Second)
	}
	h.w.e.awaitReleased(h.p, h.rt)
	if err := h.rt.Shutdown(context.Background()); err != nil {
		h.w.e.failWorld("%s: Shutdown: %v", h.p.Name(), err)
	}
	h.p.Sleep(time.Second) // owners off the loops receive their messages
	h.w.open--
}

// closeIDs closes all identifiers of the program, and waits until they are gone. The runtime
// continues.
func (h *connHost) closeIDs() {
	left := 0
	for _, i := range h.rt.Inspect() {
		var cmd rdma.Command = &rdma.DestroyID{}
		if i.Wire != "" {
			cmd = &rdma.Close{}
		}
		left++
		h.sendCommand(i.PID, cmd, func(any) { left-- })
	}
	for left > 0 && !h.p.Dead() {
		h.p.Sleep(time.Second)
	}
}

// listOutstanding lists expected events.
func (w *connections) listOutstanding() []string {
	all := w.ids.Unanswered(w.now() + 1)
	for _, c := range w.order {
		all = append(all, c.listOutstanding()...)
	}
	return all
}

// Check implements Workload.
func (w *connections) Check() {
	w.ids.End(w.now())
	for _, c := range w.order {
		c.judgeMessages()
	}
}

// Killed implements Killer.
func (w *connections) Killed(p *world.Process) {
	for _, h := range w.hosts {
		if h.p == p {
			h.handleKilled()
		}
	}
}

// connHost is the program on a machine.
type connHost struct {
	w       *connections
	machine int
	ops     []connOp
	next    int  // index into ops
	busy    *int // goroutines of the process that wait

	p      *world.Process
	rt     *rdma.Runtime
	root   *actor.RootContext
	ends   map[string]*connEnd // keyed by PID
	owners []*connOwner
	shared [ownerKinds]*connOwner
	sinks  [2]*sink
	dues   *dues
	names  int
}

// main runs the program.
func (h *connHost) main(p *world.Process) {
	h.p, h.root, h.names, h.busy = p, p.System().Root, 0, new(int)
	h.ends, h.owners, h.shared, h.sinks = make(map[string]*connEnd), nil, [ownerKinds]*connOwner{}, [2]*sink{}
	h.dues = h.newDues()
	rt, ok := h.w.e.Open(p, &connObserver{h: h, p: p})
	if !ok || h.p != p {
		return // killed: it continues only for its shutdown, when the world ends
	}
	h.rt = rt
	again := h.next // listeners of a killed process
	for _, op := range h.ops[:again] {
		if op.verb == connServe {
			h.beginServe(op.serve)
		}
	}
	for h.next < len(h.ops) {
		op := h.ops[h.next]
		if wait := op.at - h.w.now(); wait > 0 {
			p.Sleep(wait)
		}
		if h.p != p {
			return
		}
		h.w.e.World.Trace("%s %v", p.Name(), op)
		h.next++
		h.beginOp(op)
	}
}

// beginOp begins an operation.
func (h *connHost) beginOp(op connOp) {
	switch op.verb {
	case connServe:
		h.beginServe(op.serve)
		return
	case connDial:
		h.beginDial(h.w.conns[op.conn])
		return
	}
	c := h.w.conns[op.conn]
	if c == nil {
		return // its dial was left out
	}
	e := c.ends[op.side]
	if e == nil || e.dead {
		return
	}
	switch op.verb {
	case connSend:
		e.sendAll(op)
	case connPump:
		e.startPump(op)
	case connMemory:
		e.allocMemory(op)
	case connWrite:
		e.writeToPeer(op)
	case connRead:
		e.readFromPeer(op)
	case connAtomic:
		e.doAtomic(op)
	case connRevoke:
		e.revokeGrant(op)
	case connLook:
		e.lookAtMemory(op)
	case connClose:
		e.closeConn(op)
	case connDrop:
		e.stopOwner(op)
	case connMeddle:
		e.sendIllegal(op)
	case connHand:
		e.handOver(op)
	case connForge:
		e.useForged(op)
	case connForeign:
		e.sendForeign(op)
	case connLeave:
		e.panicOrExit(op)
	}
}

// newName generates a name that the process has not used.
func (h *connHost) newName(kind string) string {
	h.names++
	return fmt.Sprintf("%s%d", kind, h.names)
}

// keyOf names an identifier for the ledgers.
func keyOf(p *world.Process, id *actor.PID) string { return p.Name() + " " + id.GetId() }

// idConfig returns the settings of an identifier.
func (s idSpec) idConfig() rdma.IDConfig {
	return rdma.IDConfig{MaxMessage: s.maxMessage, Credits: s.credits, Memory: s.memory}
}

func (h *connHost) beginServe(s *serveSpec) {
	cfg := s.id.idConfig()
	var o *connOwner
	if s.owner == ownHandler {
		cfg.Handler = actor.PropsFromProducer(func() actor.Actor { return h.newOwner("handler") })
		o = h.ownerOfKind(sharedLoop)
	} else {
		o = h.ownerOfKind(s.owner)
	}
	id := h.rt.CreateID(o.pid, cfg)
	o.ids = append(o.ids, keyOf(h.p, id))
	h.sendCommand(id, &rdma.Serve{Addr: h.w.e.Addr(h.machine, s.number)}, nil)
}

// beginDial begins a connection.
func (h *connHost) beginDial(c *conn) {
	s := c.spec
	o := h.ownerOfKind(s.owner)
	cfg := s.id.idConfig()
	cfg.Manual = s.manual && !h.w.e.Security.Secured() &&
		h.w.idFlavor()&states.IWARP != 0 // elsewhere it would create queue pairs
	id := h.rt.CreateID(o.pid, cfg)
	e := c.newEnd(0, h, o, id)
	if e.manual = cfg.Manual; e.manual {
		h.w.ids.Manual(e.key)
	}
	d := &rdma.Dial{Addr: h.w.e.Addr(s.to, s.listener), Src: c.sourceAddr(), PrivateData: c.privateData()}
	switch s.way {
	case dialOwner:
		e.dial, e.dialled = h.w.ids.Asked(h.w.now(), keyOf(h.p, id), "dial"), d
		h.root.RequestWithCustomSender(id, d, o.pid)
	case dialOther:
		h.sendCommand(id, d, nil)
	case dialTwice:
		h.connectTwice(e, c.privateData())
	default:
		h.askAndWait(e, d)
	}
}

// handleKilled discards the state of the process.
func (h *connHost) handleKilled() {
	h.w.ids.MootAll(h.p.Name() + " ")
	for _, c := range h.w.order {
		for _, e := range c.ends {
			if e != nil && e.h == h {
				e.dead = true
			}
		}
	}
	h.p, h.rt, h.busy = nil, nil, nil
}
