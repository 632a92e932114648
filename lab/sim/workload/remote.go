package workload

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// Remote is the workload of package remoting: nodes whose actors exchange messages, requests and
// watches.
var Remote = &Kind{
	Name: "remote",
	Verbs: []string{
		"request", "future", "burst", "large", "forward", "watch", "stop", "spawn", "conceal", "slow", "retain",
		"panic", "odd", "shutdown", "block", "flood",
	},
	Draw: drawRemote,
	New:  func(e *Env, ops []Op) Workload { return newRemote(e, ops) },
}

// The actors of each node. Expose in newRemote permits access to them.
const (
	loopA  = "loop-a" // lives as long as its node
	loopB  = "loop-b"
	offA   = "off-a"
	offB   = "off-b"
	mailA  = "mail-a" // has Proto.Actor's mailbox
	hidden = "hidden" // may not be reached
	solid  = "solid"  // may be watched, but neither be reached nor be stopped
	nobody = "nobody" // does not exist

	spawnKind  = "kind"
	noKind     = "unknown" // exposed, but does not exist
	deniedKind = "denied"  // exists, but is not exposed
	// spawnedAs is the prefix of the names of actors that were spawned for others.
	spawnedAs = "Remote$"
)

// remoteTargets are the targets of messages, the likely ones more often.
var remoteTargets = []string{loopA, loopA, loopA, loopB, loopB, offA, offA, offB, offB, mailA, mailA, hidden, nobody}

// remoteSenders are the actors that send and watch.
var remoteSenders = []string{loopA, loopB, offA, offB, mailA}

// sendHow is the sender of a message, and its method.
type sendHow uint8

const (
	sendPlain    sendHow = iota // an actor, which wants no answer
	sendRequest                 // an actor
	sendNobody                  // a goroutine, which wants no answer
	sendFuture                  // a goroutine, which waits for the answer
	sendReenter                 // an actor, which has the answer from a future
	sendUncoded                 // an actor: there is no codec for it
	sendPanics                  // an actor: its codec panics
	sendUnknown                 // an actor: machines with odd numbers do not know the type
	sendUndecode                // an actor: it cannot be decoded
)

var sendHows = [...]string{
	"sends", "requests", "has a goroutine send", "has a goroutine ask", "asks", "sends without a codec", "sends with a codec that panics",
	"sends of a type that not all know", "sends of a type that only it can decode",
}

// isOdd reports whether the receiver cannot get the message.
func (h sendHow) isOdd() bool { return h >= sendUncoded }

// thenDo is the target's reaction.
type thenDo uint8

const (
	thenNothing thenDo = iota
	thenSleep          // if it is not on a loop
	thenRetain
	thenForward
	thenPanic
	thenExit  // if it is not on a loop
	thenEnd   // it stops
	thenStand // it sleeps for long at the first message
)

var thenDos = [...]string{"", ", which sleeps", ", which keeps them", ", which forwards them", ", which panics", ", which calls Goexit", ", which stops", ", which stands still"}

// postOp is messages from one machine to another.
type postOp struct {
	start
	to      int
	sender  string
	target  string
	how     sendHow
	then    thenDo
	via     place // target of forwarding
	d       time.Duration
	timeout time.Duration // of a future; 0: a long one
	n, size int
	header  bool
}

// place is an actor of a machine.
type place struct {
	machine int
	name    string
}

func (o *postOp) String() string {
	s := fmt.Sprintf("at %v %s of machine %d %s %d messages of %d bytes to %s of machine %d", o.at, o.sender, o.machine, sendHows[o.how], o.n, o.size, o.target, o.to)
	s += thenDos[o.then]
	switch o.then {
	case thenForward:
		s += fmt.Sprintf(" to %s of machine %d", o.via.name, o.via.machine)
	case thenSleep, thenRetain, thenStand:
		s += fmt.Sprintf(" for %v", o.d)
	}
	if o.timeout > 0 {
		s += fmt.Sprintf(" (within %v)", o.timeout)
	}
	return s
}

// watchOp is a watch.
type watchOp struct {
	start
	to      int
	watcher string
	target  string
	unwatch time.Duration // after which it is cancelled; 0: never
}

func (o *watchOp) String() string {
	s := fmt.Sprintf("at %v %s of machine %d watches %s of machine %d", o.at, o.watcher, o.machine, o.target, o.to)
	if o.unwatch > 0 {
		s += fmt.Sprintf(" for %v", o.unwatch)
	}
	return s
}

// haltOp stops an actor of another machine.
type haltOp struct {
	start
	to     int
	target string
	poison bool
}

func (o *haltOp) String() string {
	return fmt.Sprintf("at %v machine %d stops %s of machine %d (poison: %v)", o.at, o.machine, o.target, o.to, o.poison)
}

// spawnOp spawns an actor on another machine, and sends it a message.
type spawnOp struct {
	start
	to   int
	kind string
	name string
	then string // "", "stop", "watch"
}

func (o *spawnOp) String() string {
	return fmt.Sprintf("at %v machine %d has machine %d spawn a %q with the name %q, then: %q", o.at, o.machine, o.to, o.kind, o.name, o.then)
}

// exposeOp changes whether off-b may be reached.
type exposeOp struct {
	start
	on bool
}

func (o *exposeOp) String() string {
	return fmt.Sprintf("at %v machine %d exposes %s: %v", o.at, o.machine, offB, o.on)
}

// leaveOp shuts a node down, and starts another one.
type leaveOp struct {
	start
	timeout time.Duration
}

func (o *leaveOp) String() string {
	return fmt.Sprintf("at %v machine %d shuts its node down within %v, and starts another one", o.at, o.machine, o.timeout)
}

// blockOp makes a node refuse another one for a while.
type blockOp struct {
	start
	who int
	d   time.Duration
}

func (o *blockOp) String() string {
	return fmt.Sprintf("at %v machine %d refuses machine %d for %v", o.at, o.machine, o.who, o.d)
}

func drawRemote(d Draw, n int) (ops []Op) {
	for len(ops) < n {
		at := d.within(d.Time)
		from := d.IntN(d.Machines)
		to := (from + 1 + d.IntN(d.Machines-1)) % d.Machines
		switch x := d.IntN(24); {
		case x <= 3 && d.Has["watch"]:
			o := &watchOp{start: start{at, from}, to: to, watcher: oneOf(d.Rand, remoteSenders...), target: oneOf(d.Rand, remoteTargets...)}
			if d.IntN(3) == 0 {
				o.unwatch = 1 + d.within(d.Time/2)
			}
			ops = append(ops, o)
		case x <= 5 && d.Has["stop"]:
			ops = append(ops, &haltOp{start{at, from}, to, oneOf(d.Rand, loopB, offA, offB, mailA, solid, nobody), d.IntN(2) == 0})
		case x <= 7 && d.Has["spawn"]:
			o := &spawnOp{start: start{at, from}, to: to, kind: spawnKind, then: oneOf(d.Rand, "", "stop", "watch")}
			if d.IntN(2) == 0 {
				o.name = oneOf(d.Rand, "x", "y")
			}
			if d.IntN(8) == 0 {
				o.kind = oneOf(d.Rand, noKind, deniedKind)
			}
			ops = append(ops, o)
		case x == 8 && d.Has["conceal"]:
			ops = append(ops, &exposeOp{start{at, to}, d.IntN(2) == 0})
		case x == 9 && d.Has["shutdown"]:
			ops = append(ops, &leaveOp{start{at, to}, oneOf(d.Rand, time.Millisecond, 200*time.Millisecond, 20*time.Second)})
		case (x == 10 || x >= 22) && d.Has["flood"]:
			ops = append(ops, d.flood(at, from, to))
		case x == 11 && d.Has["block"]:
			ops = append(ops, &blockOp{start{at, to}, from, d.duration(100*time.Millisecond, 5)})
		default:
			ops = append(ops, d.post(at, from, to))
		}
	}
	return ops
}

// post draws messages.
func (d Draw) post(at time.Duration, from, to int) *postOp {
	o := &postOp{start: start{at, from}, to: to, sender: oneOf(d.Rand, remoteSenders...), target: oneOf(d.Rand, remoteTargets...), n: 1}
	o.size, o.header, o.d = oracle.MinPost+d.size(7), d.IntN(4) == 0, d.duration(time.Millisecond, 8)
	switch x := d.IntN(8); {
	case x <= 2 && d.Has["request"]:
		o.how = sendRequest
	case x <= 4 && d.Has["future"]:
		o.how = sendFuture + sendHow(d.IntN(2))
	case x == 5 && d.Has["odd"]:
		o.how = sendUncoded + sendHow(d.IntN(4))
	case x == 6:
		o.how = sendNobody
	}
	if d.IntN(2) == 0 {
		o.timeout = d.duration(20*time.Millisecond, 7)
	}
	if d.Has["large"] && d.IntN(4) == 0 {
		o.size += d.size(12)
	}
	if d.Has["burst"] && d.IntN(3) == 0 {
		o.n = 2 + d.IntN(40)
	}
	o.then = d.then()
	if o.then == thenForward {
		o.via = place{(to + 1 + d.IntN(d.Machines-1)) % d.Machines, oneOf(d.Rand, loopA, loopB, offA, mailA, nobody)}
	}
	return o
}

// flood draws many messages to an actor that consumes none of them for a while.
func (d Draw) flood(at time.Duration, from, to int) *postOp {
	o := d.post(at, from, to)
	o.how, o.target, o.then = oneOf(d.Rand, sendPlain, sendNobody, sendRequest, sendRequest), oneOf(d.Rand, offA, offB, mailA), thenStand
	o.n, o.size, o.d = 20+d.IntN(160), 1<<10+d.IntN(60<<10), d.duration(500*time.Millisecond, 4)
	return o
}

// then draws the reaction of a target.
func (d Draw) then() thenDo {
	switch x := d.IntN(10); {
	case x <= 1 && d.Has["slow"]:
		return thenSleep
	case x == 2 && d.Has["retain"]:
		return thenRetain
	case x <= 4 && d.Has["forward"]:
		return thenForward
	case x == 5 && d.Has["panic"]:
		return thenPanic + thenDo(d.IntN(2))
	case x == 6 && d.Has["stop"] && d.IntN(2) == 0:
		return thenEnd
	}
	return thenNothing
}
