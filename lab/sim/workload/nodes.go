package workload

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// Nodes is package reconnect's: nodes that keep connections to one another, and send messages over
// them, of which they want to know what becomes.
var Nodes = &Kind{
	Name: "nodes", Machines: 2,
	Verbs: []string{"idempotent", "plain", "large", "burst", "peers", "unknown", "resolve", "post", "end", "cut", "break"},
	Draw:  drawNodes,
	New:   func(e *Env, ops []Op) Workload { return newNodes(e, ops) },
}

// linkOp is a reconnecting actor from one machine to another.
type linkOp struct {
	from, to int
	peers    bool // the other one has one, too, and they agree about one connection
	unknown  bool // the other one has none before the first request comes
	resolve  bool // a name service says where the other one is
	posts    bool // its owner keeps messages itself, and posts those that go out at once
}

func (o *linkOp) String() string {
	s := fmt.Sprintf("machine %d keeps a connection to machine %d", o.from, o.to)
	if o.peers {
		s += ", and they to one another"
	}
	if o.unknown {
		s += ", when it has heard of it"
	}
	if o.resolve {
		s += ", which it knows by name"
	}
	if o.posts {
		s += ", and posts what goes out at once"
	}
	return s
}

// parcelOp is messages from one machine to another.
type parcelOp struct {
	at         time.Duration
	from, to   int
	n, size    int
	idempotent bool
	plain      bool
}

func (o *parcelOp) String() string {
	s := fmt.Sprintf("at %v machine %d sends machine %d %d messages of %d bytes", o.at, o.from, o.to, o.n, o.size)
	if o.idempotent {
		s += " which may be repeated"
	}
	if o.plain {
		s += " of which nobody wants to know"
	}
	return s
}

// cutOp ends a connection, or a reconnecting actor.
type cutOp struct {
	at       time.Duration
	from, to int
	how      string
}

const (
	cutPeer    = "is disconnected by the other side"
	cutClose   = "is closed"
	cutDrain   = "is drained"
	cutDestroy = "is destroyed"
	cutBreak   = "is broken off"
)

func (o *cutOp) String() string {
	return fmt.Sprintf("at %v machine %d's connection to machine %d %s", o.at, o.from, o.to, o.how)
}

func drawNodes(d Draw, n int) (ops []Op) {
	var links []*linkOp
	for range 1 + d.IntN(d.Machines) {
		from := d.IntN(d.Machines)
		o := &linkOp{from: from, to: (from + 1 + d.IntN(d.Machines-1)) % d.Machines, peers: d.Has["peers"] && d.IntN(2) == 0}
		o.unknown = o.peers && d.Has["unknown"] && d.IntN(2) == 0
		o.resolve = d.Has["resolve"] && d.IntN(2) == 0
		o.posts = d.Has["post"] && d.IntN(2) == 0
		links = append(links, o)
		ops = append(ops, o)
	}
	for len(ops) < n {
		l := links[d.IntN(len(links))]
		at, from, to := d.within(d.Time), l.from, l.to
		if l.peers && d.IntN(2) == 0 {
			from, to = to, from
		}
		switch x := d.IntN(16); {
		case x <= 1 && d.Has["cut"]:
			ops = append(ops, &cutOp{at, from, to, cutPeer})
		case x == 3 && d.Has["break"]:
			ops = append(ops, &cutOp{at, from, to, cutBreak})
		case x == 2 && d.Has["end"]:
			how := []string{cutClose, cutDrain, cutDestroy}[d.IntN(3)]
			ops = append(ops, &cutOp{at, from, to, how})
		default:
			o := &parcelOp{at: at, from: from, to: to, n: 1, size: d.size(5) + oracle.MinParcel}
			o.idempotent = d.Has["idempotent"] && d.IntN(2) == 0
			o.plain = d.Has["plain"] && d.IntN(4) == 0
			if d.Has["large"] && d.IntN(4) == 0 {
				o.size += d.size(12)
			}
			if d.Has["burst"] && d.IntN(3) == 0 {
				o.n = 2 + d.IntN(40)
			}
			ops = append(ops, o)
		}
	}
	return ops
}

// pair is a connection's two machines: whose it is, and to which it leads.
type pair struct{ from, to int }

// nodes is the workload.
type nodes struct {
	*Env
	ops    []Op
	begun  []bool
	kept   map[pair]*linkOp // which are kept
	order  []pair
	cfg    reconnect.Config
	ledger oracle.Fates
	all    []*node // by machine; nil: its process has not come so far
	left   []bool  // by machine
	starts uint64
	// of nodes that a machine has not heard of
	strangers int
	refuses   bool // the first one is turned away
	naming    bool // they are called by their address when they are connected
}

func newNodes(e *Env, ops []Op) *nodes {
	n := len(e.Machines)
	w := &nodes{
		Env: e, ops: ops, begun: make([]bool, len(ops)), kept: make(map[pair]*linkOp),
		ledger: oracle.Fates{Fail: e.fail}, all: make([]*node, n), left: make([]bool, n),
	}
	for _, op := range ops {
		o, ok := op.(*linkOp)
		if !ok {
			continue
		}
		if there := w.keep(pair{o.from, o.to}, o); o.peers && !o.unknown && !there {
			w.keep(pair{o.to, o.from}, o)
		}
	}
	w.cfg.Queue, w.cfg.FailFast = one(e, 0, 1, 4, 16), e.Rand.IntN(4) == 0
	w.cfg.Backoff = reconnect.Backoff{First: 10 * time.Millisecond, Most: one(e, 100*time.Millisecond, 2*time.Second), Stable: time.Second}
	w.cfg.ID.MaxMessage, w.cfg.ID.Credits = one(e, 0, 512, 4<<10), one(e, 0, 1, 2, 4)
	w.cfg.Dial.Timeout = one(e, 0, time.Second)
	w.strangers, w.refuses, w.naming = one(e, 0, 1, 2), e.Rand.IntN(4) == 0, e.Rand.IntN(2) == 0
	return w
}

// keep enters that a connection is kept, unless there is one between the two.
func (w *nodes) keep(p pair, o *linkOp) (there bool) {
	if w.kept[p] != nil {
		return true
	}
	if back := w.kept[pair{p.to, p.from}]; back != nil && (back.peers != o.peers || back.unknown || o.unknown) {
		return true // of two nodes either both are peers or none, and one is unknown
	}
	w.kept[p] = o
	w.order = append(w.order, p)
	return false
}

// Start implements Workload.
func (w *nodes) Start() {
	for m := range w.Machines {
		w.Env.Start(m, func(p *world.Process) { w.run(p, m) })
	}
}

// Done implements Workload.
func (w *nodes) Done() bool {
	for _, left := range w.left {
		if !left {
			return false
		}
	}
	return true
}

// Check implements Workload.
func (w *nodes) Check() { w.ledger.End(w.World.Now()) }

// Killed implements Killer.
func (w *nodes) Killed(p *world.Process) {
	for m, n := range w.all {
		if n != nil && n.p == p {
			w.all[m] = nil
		}
	}
}
