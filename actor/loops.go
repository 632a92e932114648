package actor

import (
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/eventloop"
)

// LoopInfo is Loops' report on one loop.
type LoopInfo struct {
	Name        string
	Identifiers int    // that live there, and requests on their way there: what a loop is chosen by
	Arrived     uint64 // connections that have come from other loops' listeners
	// that came to listeners and did not speak the device's protocol: cmid.Channel.Strangers
	Strangers uint64
	eventloop.Stats
	Blocked *Blocked // nil: the loop goes on

	// AsOf is when the loop has said what follows: now, or when it was last asked before it was
	// blocked. Zero: it has not said anything yet.
	AsOf    time.Time
	Memory  []PoolInfo
	Devices []DeviceInfo
	LoopTotals
}

// Blocked says that a loop has been at one thing, or at one turn's things, for more than 100 ms.
type Blocked struct {
	For time.Duration    // since the turn has begun
	By  eventloop.Holder // what has the loop now: the actor, if it is one
}

// PoolInfo is memory that a loop has for one purpose, in bytes. The pools are: "receive", into
// which messages are received (Limits.ReceiveMemory); "send", from which messages are sent at once
// (Limits.SendMemory), which the embedded device needs none of; "large", from which peers read
// large messages (Limits.SendMemory); "one-sided", of AllocMemory (Limits.Memory).
type PoolInfo = datapath.Pool

// DeviceInfo is what a loop has of a device.
type DeviceInfo = datapath.DeviceInfo

// loopFigures is what only the loop knows.
type loopFigures struct {
	asOf    time.Time
	memory  []PoolInfo
	devices []DeviceInfo
	totals  LoopTotals
}

func (l *loop) figures() loopFigures {
	return loopFigures{l.el.Now(), l.Pools(), l.DeviceInfos(), l.totals()}
}

// Loops reports on the loops, in their order. It asks them for what only they know, and waits for
// at most 100 ms; a loop that is blocked longer is reported as it was (LoopInfo.AsOf). After
// Shutdown they are reported as they were at their end. Any goroutine. On a loop's own goroutine no
// other loop is asked.
func (rt *Runtime) Loops() []LoopInfo {
	infos := make([]LoopInfo, len(rt.loops))
	figures := rt.askFigures()
	for i, l := range rt.loops {
		f := figures[i]
		infos[i] = LoopInfo{
			Name: l.el.Name(), Identifiers: int(l.assigned.Load()), Arrived: l.arrived.Load(), Strangers: l.ch.Strangers(),
			Stats: l.el.Stats(), AsOf: f.asOf, Memory: f.memory, Devices: f.devices,
			LoopTotals: f.totals,
		}
		if rt.over.Load() {
			infos[i].States, infos[i].Waiting, infos[i].Listeners = LoopTotals{}.States, 0, nil
		}
		if d := infos[i].Turn; d > answerIn {
			infos[i].Blocked = &Blocked{d, l.el.Holder()}
		}
	}
	return infos
}

func (rt *Runtime) askFigures() []loopFigures {
	figures := make([]loopFigures, len(rt.loops))
	here := rt.here()
	asked := make([]<-chan struct{}, len(rt.loops))
	for i, l := range rt.loops {
		if here == nil && !rt.over.Load() {
			asked[i] = l.askRest.begin(l, func(answer func(loopFigures)) { answer(l.figures()) })
		}
	}
	if here == nil {
		rt.await(asked)
	}
	for i, l := range rt.loops {
		if l == here {
			figures[i] = l.figures()
		} else {
			figures[i] = l.askRest.lastAnswer()
		}
	}
	return figures
}
