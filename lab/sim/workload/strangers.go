package workload

import (
	"fmt"
	"slices"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// Strangers is a server, its members, which send it messages and get them back, and strangers, who
// have no key and want the server's time, places and memory. The members must not notice.
var Strangers = &Kind{
	Name: "strangers", Machines: 3, Draw: drawStrangers, New: newStrangers,
	Verbs: []string{strangeInsecure, strangeKey, strangeHalf, strangeGarbage, strangeSlow, strangeFlood},
}

// What strangers do.
const (
	strangeInsecure = "insecure"  // connect without a mode
	strangeKey      = "wrong key" // or with a key that nobody knows
	strangeHalf     = "half open" // begin a handshake, and say no more
	strangeGarbage  = "garbage"   // begin a handshake, and go on with what is none
	strangeSlow     = "slow"      // begin with a byte at a time (embedded device)
	strangeFlood    = "flood"     // begin with what no device sends (embedded device)
)

// The bounds that the server keeps.
const (
	// memberWithin is how long a member waits at most for its connection, or for an answer.
	memberWithin = 20 * time.Second
	// strangerWithin is how long a stranger keeps the server busy at most: the longest deadline
	// that plans have, the goodbye, and what the network takes.
	strangerWithin = 20 * time.Second
)

// firstStranger is when the first of them may come: the server listens by then.
const firstStranger = time.Second

// doorOp is what the server lets strangers have.
type doorOp struct{ handshakes, rate int }

func (o *doorOp) String() string {
	return fmt.Sprintf("%d handshakes at a time, %d requests of an address in a second", o.handshakes, o.rate)
}

// memberOp is a member: a connection to one of two listeners, and messages on it.
type memberOp struct {
	number   int // from 0
	at       time.Duration
	machine  int
	listener int
	n, size  int
	every    time.Duration
}

func (o *memberOp) String() string {
	return fmt.Sprintf("at %v member %d of machine %d connects to listener %d, and sends %d messages of %d bytes, one in %v",
		o.at, o.number, o.machine+1, o.listener, o.n, o.size, o.every)
}

// strangerOp is strangers who come at the same time.
type strangerOp struct {
	at       time.Duration
	verb     string
	listener int
	n, size  int
	every    time.Duration
}

func (o *strangerOp) String() string {
	return fmt.Sprintf("at %v %d strangers come to listener %d: %s, %d bytes, one in %v", o.at, o.n, o.listener, o.verb, o.size, o.every)
}

func drawStrangers(d Draw, n int) []Op {
	ops := []Op{&doorOp{3 + d.IntN(13), []int{0, 0, 20}[d.IntN(3)]}}
	at := func() time.Duration { return time.Duration(d.Int64N(int64(d.Time))).Truncate(time.Millisecond) }
	begin := at() / 2
	for i := range 2 + n/4 {
		if d.IntN(2) == 0 { // the others come at once, and find no place at first
			begin = at() / 2
		}
		o := &memberOp{number: i, at: begin, machine: 1 + d.IntN(d.Machines-2), listener: d.IntN(2), n: 2 + d.IntN(10)}
		o.size, o.every = 8+d.IntN(2000), time.Duration(1+d.IntN(1000))*time.Millisecond
		ops = append(ops, o)
	}
	var verbs []string
	for _, v := range []string{strangeInsecure, strangeKey, strangeHalf, strangeGarbage, strangeSlow, strangeFlood} {
		if d.Has[v] && (d.Device == world.Embedded || v != strangeSlow && v != strangeFlood) {
			verbs = append(verbs, v)
		}
	}
	if len(verbs) == 0 {
		verbs = []string{strangeHalf}
	}
	for range n {
		o := &strangerOp{at: at(), verb: verbs[d.IntN(len(verbs))], listener: d.IntN(2), n: 1 + d.IntN(12), size: 1 + d.IntN(300)}
		o.every = time.Duration(50+d.IntN(950)) * time.Millisecond
		ops = append(ops, o)
	}
	return ops
}

// strangers is the workload.
type strangers struct {
	*Env
	members   []*member
	comes     []*strangerOp
	come      int // of them: how many have begun
	there     int // strangers that have come and not gone
	behaved   oracle.Isolation
	unwelcome oracle.Liveness
	checked   time.Duration
	settled   bool // it was checked since the last fault
}

func newStrangers(e *Env, ops []Op) Workload {
	w := &strangers{Env: e}
	w.behaved = oracle.Isolation{Fail: e.fail, Within: memberWithin}
	w.unwelcome = oracle.Liveness{Fail: e.fail, Within: strangerWithin}
	if !e.Security.Secured() {
		e.Security.Mode = rdma.PSK
	}
	e.Config.Limits = rdma.Limits{}
	for _, op := range ops {
		switch o := op.(type) {
		case *doorOp:
			e.Config.Limits.Handshakes, e.Config.Limits.RequestRate = o.handshakes, o.rate
		case *memberOp:
			m := &member{w: w, memberOp: o}
			m.waits = w.behaved.Behaved(fmt.Sprintf("member %d", o.number))
			w.members = append(w.members, m)
		case *strangerOp:
			w.comes = append(w.comes, o)
		}
	}
	return w
}

// Start implements Workload.
func (w *strangers) Start() {
	w.unwelcome.Calm(0)
	w.Env.Start(0, w.serve)
	for machine := 1; machine < w.outside(); machine++ {
		w.Env.Start(machine, func(p *world.Process) { w.belong(p, machine) })
	}
	w.Env.Start(w.outside(), w.intrude)
}

// outside is the machine of the strangers.
func (w *strangers) outside() int { return len(w.Machines) - 1 }

func (w *strangers) now() time.Duration { return w.World.Now() }

// Done implements Workload.
func (w *strangers) Done() bool {
	if now := w.now(); now-w.checked > time.Second {
		w.checked = now
		if !w.settled && w.hit(0, w.outside()) {
			w.unwelcome.Forget() // who hears nothing of a machine that is gone waits on
		}
		w.settled = true
		w.unwelcome.Check(now)
		for _, m := range w.members {
			m.excuse()
		}
		w.behaved.Check(now)
	}
	return w.come == len(w.comes) && w.there == 0 && !slices.ContainsFunc(w.members, func(m *member) bool { return !m.over })
}

// Check implements Workload.
func (w *strangers) Check() {}

// Killed implements Killer.
func (w *strangers) Killed(p *world.Process) {
	for _, m := range w.members {
		if m.p == p {
			m.leave()
		}
	}
	if p.Machine() == w.Machines[w.outside()] {
		w.there = 0
		w.unwelcome.Forget()
	}
}
