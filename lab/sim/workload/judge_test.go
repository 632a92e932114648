package workload

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// These tests play correct behaviour that once failed worlds.

// inWorld plays two machines with embedded devices, 10 ms apart.
func inWorld(t *testing.T, script func(w *world.World, e *Env)) {
	t.Helper()
	r := world.Run(t, world.Config{Seed: 1}, func(w *world.World) {
		e := &Env{World: w, Name: "test", Port: 7000, Rand: rand.New(rand.NewPCG(1, 1)), Patience: time.Minute}
		for _, m := range []string{"m1", "m2"} {
			e.Machines = append(e.Machines, w.Machine(m, "10.0.0."+m[1:]+"/24"))
		}
		w.Latency(10*time.Millisecond, 0, 0)
		script(w, e)
	})
	if r.Failure != "" {
		t.Error(r.Failure)
	}
}

// served returns a listener of machine 0, and a connection to it that machine 1 dials.
func served(at time.Duration, more ...Op) []Op {
	id := idSpec{memory: 4 << 10}
	return append([]Op{
		connOp{verb: connServe, machine: 0, conn: -1, serve: &serveSpec{owner: sharedLoop, id: id}},
		connOp{verb: connDial, machine: 1, at: at, dial: &dialSpec{id: id}},
	}, more...)
}

// A killed program does not continue when the world ends, although its process does, for its
// shutdown.
func TestKilledProgramsStay(t *testing.T) {
	inWorld(t, func(w *world.World, e *Env) {
		e.Start(0, func(*world.Process) { w.Fail("a program begins that was killed before") })
		e.Programs[0].Killed = true
		e.Programs[0].Kill()
		c := newConnections(e, served(2*time.Second)).(*connections)
		c.Start()
		w.RunFor(time.Second)
		for _, g := range e.Programs[1:] {
			g.Killed = true
			g.Kill()
			c.Killed(g.Process)
		}
		w.RunFor(2 * time.Second)
	})
}

// An owner with one credit that retains many messages makes progress.
func TestKeepsNotForTooLong(t *testing.T) {
	o, e := &connOwner{}, &connEnd{credits: 1}
	var stood time.Duration
	for range 1000 {
		if o.mayKeep(e, 900*time.Millisecond) {
			stood += 900 * time.Millisecond
		}
	}
	if stood < 30*time.Second || stood > 62*time.Second {
		t.Errorf("messages are retained for %v, want about a minute", stood)
	}
}

// A handler stops after it has handed its connection over, and does not learn that messages which
// it has sent found no room.
func TestFormerOwnerMissesReports(t *testing.T) {
	inWorld(t, func(w *world.World, e *Env) {
		e.Config.Limits.Mailbox = 11
		ops := served(0,
			connOp{verb: connHand, machine: 0, side: 1, at: time.Second},
			connOp{verb: connPump, machine: 0, side: 1, at: time.Second, n: 40, bytes: 2000},
			connOp{verb: connSend, machine: 1, at: 2 * e.Patience, n: 1, bytes: 10},
		)
		ops[0].(connOp).serve.owner = ownHandler
		ops[1].(connOp).dial.behaved = true
		c := newConnections(e, ops).(*connections)
		c.Start()
		e.Rest()
		if !w.RunUntil(3*e.Patience, c.Done) {
			w.Fail("not done: %q", c.listOutstanding())
			return
		}
		c.Check()
		if d := c.order[0].ends[1].out; d.Submitted() == d.Count() {
			t.Error("no message failed")
		}
	})
}

// Memory is freed while the peer reads it. The connection may end.
func TestFreedWhileItIsRead(t *testing.T) {
	inWorld(t, func(w *world.World, e *Env) {
		const second = time.Second
		c := newConnections(e, served(0,
			connOp{verb: connMemory, machine: 0, side: 1, at: second, bytes: 100, way: 1},
			connOp{verb: connRead, machine: 1, at: 2 * second, bytes: 8},
			connOp{verb: connRead, machine: 1, at: 3 * second, bytes: 8},
			connOp{verb: connRevoke, machine: 0, side: 1, at: 3*second + 5*time.Millisecond},
		)).(*connections)
		c.Start()
		e.Rest()
		if !w.RunUntil(time.Minute, c.Done) {
			w.Fail("not done: %q", c.listOutstanding())
			return
		}
		c.Check()
		if !c.order[0].rude {
			t.Error("the memory was not freed while it was read")
		}
	})
}

// An unplanned dial succeeds. Its connection belongs to no plan.
func TestMeddlersDialGetsThrough(t *testing.T) {
	inWorld(t, func(w *world.World, e *Env) {
		c := newConnections(e, served(0)).(*connections)
		c.Start()
		w.RunFor(time.Second)
		h := c.hosts[0]
		h.p.Go(func() {
			o := h.ownerOfKind(ownLoop)
			x := newConn(c, connOp{dial: &dialSpec{}})
			m := x.newEnd(0, h, o, h.rt.CreateID(o.pid))
			m.established = true // so it may dial
			m.sendIllegal(connOp{way: 41})
		})
		w.RunFor(20 * time.Second)
	})
}

// A call ends late because of a fault, by a panic of its client's interceptor.
func TestPanicsLateBecauseOfAFault(t *testing.T) {
	inWorld(t, func(w *world.World, e *Env) {
		c := newCalls(e, []Op{&callOp{
			start: start{machine: 1}, via: viaCall, times: 1, together: 1, request: 10, reply: 10,
			timeout: 50 * time.Millisecond, between: clientPanicsLate, does: doSleep, sleep: time.Second,
		}})
		c.Start()
		if !w.RunUntil(10*time.Second, func() bool { return len(c.made) > 0 }) {
			w.Fail("no call is made")
			return
		}
		e.Disturb(1)
		w.Suspend(time.Minute)
		w.RunFor(time.Second)
		e.Rest()
		if !w.RunUntil(time.Minute, c.Done) {
			w.Fail("not done")
			return
		}
		c.Check()
	})
}

// A request is rejected after its sender's machine has lost power. The end is in order, because its
// owner has requested it.
func TestRejectsWhoIsGone(t *testing.T) {
	inWorld(t, func(w *world.World, e *Env) {
		ops := served(time.Second)
		ops[1].(connOp).dial.answer = answerReject
		c := newConnections(e, ops).(*connections)
		c.Start()
		w.RunFor(990 * time.Millisecond)
		e.Machines[0].Freeze()
		w.RunFor(100 * time.Millisecond)
		e.Machines[1].PowerOff()
		for _, g := range e.Programs[1:] {
			g.Killed = true
			c.Killed(g.Process)
		}
		e.Machines[0].Thaw()
		w.RunFor(time.Second)
		if x := c.order[0].ends[1]; x == nil || !x.closed {
			t.Error("the request was not rejected")
		}
	})
}
