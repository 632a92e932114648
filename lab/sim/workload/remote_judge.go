package workload

import (
	"slices"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// sampleBounds samples bounded quantities.
func (me *remoteNode) sampleBounds() {
	queue := me.w.queueSize()
	for _, i := range me.node.Peers() {
		limit := queue + max(queue/8, 64<<10)
		me.w.bounds.Sample(me.w.World.Now(), "bytes that wait in "+me.name+" for "+i.Peer.Name, i.Waiting, limit)
	}
}

// queueSize returns the effective Config.Queue.
func (w *remote) queueSize() int {
	if w.cfg.Queue == 0 {
		return 8 << 20
	}
	return max(w.cfg.Queue, w.cfg.MaxMessage)
}

// mayOverflow reports whether a node's queue for another one may be full: all messages and answers
// in that direction fill more than half of it. The rest is for those of spawnThere and reachNode.
func (w *remote) mayOverflow(from, to int) bool {
	const overhead = 200 // of a message: names and header
	bytes := 0
	for _, op := range w.ops {
		o, ok := op.(*postOp)
		if !ok {
			continue
		}
		ways := [][2]int{{o.machine, o.to}, {o.to, o.machine}}
		if o.then == thenForward {
			ways = append(ways, [2]int{o.to, o.via.machine}, [2]int{o.via.machine, o.machine})
		}
		for _, way := range ways {
			if way == [2]int{from, to} {
				bytes += o.n * (o.size + overhead)
			}
		}
	}
	return bytes > w.queueSize()/2
}

// completeLedger completes the ledger when nothing is under way, or when it is too late.
func (w *remote) completeLedger() {
	since, calm := w.Calm()
	now := w.World.Now()
	if w.judged || !calm || slices.Contains(w.begun, false) {
		return
	}
	late := now-since > w.Patience-20*time.Second
	if !late && (now-w.active < 2*time.Second || !w.isIdle() || w.ledger.Open() != "") {
		return
	}
	for _, n := range w.nodes {
		if n == nil || n.leaving != nil {
			return
		}
	}
	w.ledger.End(now)
	w.judgeCertain()
	w.judged = true
}

// isIdle reports whether all nodes have finished their operations, and nothing waits.
func (w *remote) isIdle() bool {
	for _, n := range w.nodes {
		if n == nil || !n.isIdle() || n.awaitsAnswers() {
			return false
		}
		for _, i := range n.node.Peers() {
			if i.Waiting > 0 {
				return false
			}
		}
	}
	return true
}

// judgeCertain checks that everything has happened which nothing could prevent.
func (w *remote) judgeCertain() {
	for n := range uint64(len(w.posts)) {
		p := w.posts[n]
		if p == nil || p.op.how.isOdd() || !w.isUndisturbed(p.op.machine, p.op.to) {
			continue
		}
		if w.mayOverflow(p.op.machine, p.op.to) || w.mayOverflow(p.op.to, p.op.machine) {
			continue
		}
		if p.Fated() && w.Config.Limits.PendingRequests > 0 {
			continue // the dial may have been refused
		}
		if p.Dead() && p.op.size > w.cfg.MaxMessage-1<<10 {
			continue // with its names it may be too large
		}
		direct := !p.forwarded && p.answers == nil && p.op.target == loopA
		answer := p.answers != nil && p.op.how == sendRequest && p.op.sender == loopA && !p.answers.forwarded
		if (direct || answer) && !p.Received() {
			w.failWorld("%v: %v was not received, and nothing has disturbed the two nodes", w.World.Now(), p)
		}
	}
}

// listHeld lists the node's resources for others at a quiet moment, when no future waits. Both
// sides know the same watches.
func (me *remoteNode) listHeld() (all []oracle.Held) {
	for _, i := range me.node.Peers() {
		between := " of " + me.name + " with " + i.Peer.Name
		all = append(all,
			oracle.Held{What: "waiting bytes" + between, Count: i.Waiting},
			oracle.Held{What: "futures" + between, Count: i.Futures},
		)
		if m := me.w.machineOfNode(i.Peer.Name); m >= 0 && me.w.nodes[m] != nil {
			all = append(all, oracle.Held{What: "watches" + between, Count: i.Watching, Owed: me.w.nodes[m].countWatches(me.name)})
		}
	}
	return all
}

// countWatches returns how many watches of the node's actors another node has.
func (me *remoteNode) countWatches(by string) int {
	for _, i := range me.node.Peers() {
		if i.Peer.Name == by {
			return i.Watched
		}
	}
	return 0
}

// nothingLeft looks for remains of a node that was shut down.
func (me *remoteNode) nothingLeft(err error) {
	if n := len(me.node.Peers()); n > 0 {
		me.w.failWorld("%s has shut down (%v), and has %d peers", me.p.Name(), err, n)
	}
	var left []string
	for _, names := range me.p.System().ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, name := range names.Keys() {
			if strings.HasPrefix(name, "remoting$") && err == nil {
				left = append(left, name)
			}
		}
	}
	if slices.Sort(left); len(left) > 0 {
		me.w.failWorld("%s has shut down, and has left %q", me.p.Name(), left)
	}
}
