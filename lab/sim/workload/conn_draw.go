package workload

import (
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// Connections is the workload of connections: actors that dial, accept, send, retain, forward,
// access each other's memory, and close in every way.
var Connections = &Kind{Name: "connections", Verbs: connVerbs, Draw: drawConnections, New: newConnections}

var connVerbs = []string{
	connSend, connPump, connMemory, connWrite, connRead, connAtomic, connRevoke, connLook, connClose, connDrop, connMeddle,
	connHand, connForge, connForeign, connLeave,
	connCrowd,
}

// drawer draws the operations of a plan.
type drawer struct {
	Draw
	ops   []Op
	conns []*connOp // dials
	serve []*connOp
}

func drawConnections(d Draw, n int) []Op {
	w := &drawer{Draw: d}
	w.drawListeners()
	verbs := w.planVerbs()
	for range max(1, n/8) {
		w.drawDial()
	}
	for len(w.ops) < n {
		if w.IntN(8) == 0 {
			w.drawDial()
			continue
		}
		w.drawOp(verbs[w.IntN(len(verbs))])
	}
	w.drawMissing()
	if w.Has[connCrowd] && w.IntN(3) == 0 {
		w.drawListenerCrowd()
	}
	slices.SortStableFunc(w.ops, func(a, b Op) int { return int(a.(connOp).at - b.(connOp).at) })
	return w.ops
}

// planVerbs lists the verbs of the plan, some of them several times.
func (w *drawer) planVerbs() (all []string) {
	often := map[string]int{connSend: 6, connPump: 3, connMemory: 3, connWrite: 4, connRead: 4, connAtomic: 2, connLook: 2}
	for _, v := range connVerbs {
		if w.Has[v] && v != connCrowd {
			for range max(1, often[v]) {
				all = append(all, v)
			}
		}
	}
	if len(all) == 0 {
		all = []string{connSend}
	}
	return all
}

// drawMissing draws each verb of the plan that was not drawn, once. Memory is drawn three times,
// because some operations need that of two connections.
func (w *drawer) drawMissing() {
	times := make(map[string]int)
	for _, op := range w.ops {
		times[op.(connOp).verb]++
	}
	for _, v := range connVerbs {
		least := 1
		if v == connMemory {
			least = 3
		}
		for n := times[v]; w.Has[v] && v != connCrowd && n < least; n++ {
			w.drawOp(v)
		}
	}
}

func (w *drawer) drawListeners() {
	for m := range w.Machines {
		if m > 0 && w.IntN(2) == 0 {
			continue
		}
		for n := range 1 + w.IntN(2) {
			op := connOp{
				verb: connServe, machine: m, conn: -1,
				serve: &serveSpec{number: n, owner: ownerKind(w.IntN(int(ownerKinds))), id: w.drawID()},
			}
			w.serve = append(w.serve, &op)
			w.ops = append(w.ops, op)
		}
	}
}

func (w *drawer) drawID() idSpec {
	s := idSpec{}
	if w.IntN(2) == 0 {
		s.maxMessage = oneOf(w.Rand, 1<<10, 4<<10, 16<<10, 100<<10, 400<<10)
	}
	if w.IntN(2) == 0 {
		s.credits = oneOf(w.Rand, 1, 2, 3, 8)
	}
	if w.Has[connMemory] {
		s.memory = oneOf(w.Rand, 0, 4<<10, 64<<10, 64<<10, 64<<10, 64<<10)
	}
	return s
}

// drawStart draws when an operation of the plan may begin.
func (w *drawer) drawStart() time.Duration { return w.upTo(w.Time).Truncate(time.Millisecond) }

func (w *drawer) drawDial() {
	to := w.serve[w.IntN(len(w.serve))]
	s := &dialSpec{
		to: to.machine, listener: to.serve.number, owner: ownerKind(w.IntN(int(ownHandler))), id: w.drawID(),
		way: dialWay(w.IntN(3)), behaved: w.IntN(3) == 0, source: sourceKind(w.IntN(int(sourceKinds))),
	}
	op := connOp{verb: connDial, machine: w.IntN(w.Machines), conn: len(w.conns), at: w.drawStart(), dial: s}
	if w.IntN(3) > 0 {
		op.at /= 4 // early, for other operations to use it
	}
	if !s.behaved {
		if w.IntN(4) == 0 {
			s.answer = answerKind(w.IntN(4))
			s.late = w.upTo(12 * time.Second)
		}
		if w.IntN(8) == 0 {
			s.way, s.timeout = dialCancel, w.upTo(oneOf(w.Rand, time.Millisecond, 50*time.Millisecond, 5*time.Second))
		}
	}
	s.manual = w.IntN(8) == 0
	if w.IntN(8) == 0 {
		s.way = dialTwice
	}
	for i := range s.sides {
		s.sides[i] = w.drawSideSpec(s.behaved)
	}
	if s.sides[0].echo == 1 && s.sides[1].echo == 1 {
		s.sides[w.IntN(2)].echo = 2 // otherwise they would answer one another forever
	}
	if s.sides[0].hold && s.sides[1].hold {
		s.sides[w.IntN(2)].hold = false // otherwise each might wait for the other's credits
	}
	w.conns = append(w.conns, &op)
	w.ops = append(w.ops, op)
}

// slowest is the maximum time for which an owner retains each message: with one credit a full queue
// must be delivered within the world's patience.
const slowest = 200 * time.Millisecond

func (w *drawer) drawSideSpec(behaved bool) (s sideSpec) {
	switch w.IntN(6) {
	case 0:
		s.keepOf, s.keep = oneOf(w.Rand, 1, 2, 5), w.upTo(time.Second)
		if s.keepOf == 1 {
			s.keep = w.upTo(slowest)
		}
		if !behaved && w.IntN(3) == 0 {
			s.keep = w.upTo(65 * time.Second)
		}
	case 1:
		s.forward = oneOf(w.Rand, 1, 3)
		if w.IntN(2) == 0 {
			s.pass, s.keep = oneOf(w.Rand, 1, 3), w.upTo(slowest)
		}
	case 2:
		s.block = w.upTo(20 * time.Millisecond)
	case 3, 4:
		s.echo, s.hold = oneOf(w.Rand, 1, 2, 3), w.IntN(2) == 0
	}
	return s
}

// drawOp draws an operation on a connection.
func (w *drawer) drawOp(verb string) {
	fit := w.conns
	if slices.Contains([]string{connRevoke, connClose, connDrop, connMeddle, connForge, connLeave}, verb) {
		fit = slices.DeleteFunc(slices.Clone(fit), func(c *connOp) bool { return c.dial.behaved })
	}
	if len(fit) == 0 {
		return
	}
	c := fit[w.IntN(len(fit))]
	op := connOp{verb: verb, conn: c.conn, side: w.IntN(2), at: c.at + w.upTo(w.Time/2).Truncate(time.Millisecond), way: w.IntN(64)}
	op.machine = c.machineOf(op.side)
	switch verb {
	case connSend:
		op.n, op.bytes = oneOf(w.Rand, 1, 1, 3, 10, 60), w.drawSize()
	case connPump:
		op.n, op.bytes = oneOf(w.Rand, 20, 100, 400), oneOf(w.Rand, 0, 1, 200, 2000, 5000)
	case connMemory:
		op.bytes = oneOf(w.Rand, 8, 100, 2000)
		if w.Has[connAtomic] && w.Device == world.TwinSoftRoCE && w.IntN(2) == 0 {
			op.way -= op.way % 4 // an integer, which other devices do not have
		}
	case connWrite, connRead:
		op.n, op.bytes = w.IntN(2000), 1+w.IntN(oneOf(w.Rand, 8, 300, 2000))
	}
	w.ops = append(w.ops, op)
	if verb == connMemory {
		w.drawUses(op)
	}
}

// drawUses draws operations of both sides on memory that one of them has just granted.
func (w *drawer) drawUses(granted connOp) {
	for _, verb := range []string{connWrite, connRead, connAtomic, connForge, connForeign, connLook, connRevoke} {
		if !w.Has[verb] || w.conns[granted.conn].dial.behaved && (verb == connForge || verb == connRevoke) {
			continue
		}
		times := w.IntN(4)
		if verb == connAtomic && granted.way%4 == 0 {
			times += 3
		}
		if verb == connRevoke || verb == connForge && granted.way%4 == 1 { // it is only read
			times++
		}
		for range times {
			op := granted
			op.verb, op.way, op.at = verb, w.IntN(64), granted.at+w.upTo(2*time.Second)
			op.n, op.bytes = w.IntN(2000), 1+w.IntN(oneOf(w.Rand, 8, 300, 2000))
			switch verb {
			case connLook, connRevoke:
			case connForeign:
				op.conn, op.side = w.drawBeside(op)
			default:
				op.side = 1 - op.side
				op.machine = w.conns[op.conn].machineOf(op.side)
			}
			w.ops = append(w.ops, op)
		}
	}
}

// drawBeside draws an end of another connection on the same machine, or the operation's own end if
// there is none.
func (w *drawer) drawBeside(op connOp) (conn, side int) {
	for _, conn := range w.Perm(len(w.conns)) {
		for side := range 2 {
			if conn != op.conn && w.conns[conn].machineOf(side) == op.machine {
				return conn, side
			}
		}
	}
	return op.conn, op.side
}

// machineOf returns the machine of one side of a dialled connection.
func (o *connOp) machineOf(side int) int {
	if side == 1 {
		return o.dial.to
	}
	return o.machine
}

// drawSize draws the size of a message.
func (w *drawer) drawSize() int {
	switch w.IntN(8) {
	case 0:
		return w.IntN(4)
	case 1:
		return oneOf(w.Rand, 4<<10, 16<<10, 64<<10) - 2 + w.IntN(4)
	case 2:
		return w.IntN(400 << 10)
	}
	return w.IntN(3000)
}
