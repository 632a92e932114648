package workload

import (
	"time"

	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

func drawCalls(d Draw, n int) (ops []Op) {
	clients := d.Machines - serverCount(d.Machines) // machines
	if d.Has["innocent"] && clients > 1 {
		clients-- // the innocent machine shares its address with no others
		ops = drawInnocents(d)
	}
	for len(ops) < n {
		at, machine, client := d.within(d.Time), serverCount(d.Machines)+d.IntN(clients), d.IntN(perMachine)
		switch x := d.IntN(24); {
		case x == 0 && d.Has["close"]:
			ops = append(ops, &endOp{start: start{at, machine}, client: client, how: endClose})
		case x == 1 && d.Has["stop"]:
			ops = append(ops, &endOp{start: start{at, machine}, client: client, how: endStop})
		case x == 5 && d.Has["runtime"]:
			ops = append(ops, &endOp{start: start{at, machine}, client: client, how: endBelow})
		case x == 2 && d.Has["close"]:
			ops = append(ops, &endOp{start: start{at, d.IntN(serverCount(d.Machines))}, client: -1, how: endClose})
		case x <= 4 && d.Has["drain"]:
			ops = append(ops, &endOp{
				start: start{at, d.IntN(serverCount(d.Machines))}, client: -1, how: endDrain, timeout: d.duration(time.Millisecond, 12),
			})
		default:
			o := drawCall(d, &callOp{start: start{at, machine}, client: client})
			drawCrowd(d, o)
			drawBetween(d, o)
			ops = append(ops, o)
		}
	}
	return ops
}

// drawCall draws the rest of o.
func drawCall(d Draw, o *callOp) *callOp {
	o.times, o.together, o.does, o.via = 1, 1, doAnswer, viaCall
	o.request, o.reply = oracle.MinCall+d.IntN(200), oracle.MinCall+d.IntN(200)
	if d.Has["many"] && d.IntN(4) == 0 {
		o.times = 2 + d.IntN(8)
	}
	if d.Has["large"] && d.IntN(3) == 0 {
		o.request = d.size(14) // some are sent in parts
	}
	if d.Has["large"] && d.IntN(3) == 0 {
		o.reply = d.size(12)
	}
	if d.Has["deadline"] && d.IntN(2) == 0 {
		o.timeout = d.duration(50*time.Microsecond, 15)
	}
	if d.Has["cancel"] && d.IntN(4) == 0 {
		o.cancel = d.duration(20*time.Microsecond, 15)
	}
	switch x := d.IntN(8); {
	case x == 0:
		o.via = viaIdempotent
	case x == 1:
		o.via = viaRaw
	case x == 2:
		o.via = viaOnLoop
	case x == 3 && d.Has["actor"]:
		o.via = viaGo
	case x == 4 && d.Has["error"]:
		o.via = viaNobody
	case x >= 5 && d.Has["stream"]:
		o.via = viaStream
		if d.Has["upload"] {
			o.via = [...]string{viaStream, viaUpload, viaBidi}[d.IntN(3)]
		}
		drawStream(d, o)
	}
	drawHandler(d, o)
	return o
}

func drawStream(d Draw, o *callOp) {
	o.items, o.take = d.IntN(30), -1
	switch d.IntN(4) {
	case 0:
		o.take = d.IntN(o.items + 1)
	case 1:
		o.pause = d.duration(50*time.Microsecond, 9)
	}
	if d.IntN(4) == 0 {
		o.sleep = d.duration(50*time.Microsecond, 9)
	}
	o.reply = min(o.reply, 10_000)
	if o.via != viaUpload && drawParts(d, &o.reply) {
		o.items, o.take = min(o.items, maxParts), min(o.take, maxParts)
	}
	if !o.uploads() {
		return
	}
	o.sends, o.reads, o.leaves = 1+d.IntN(30), -1, d.IntN(6) == 0
	if d.IntN(4) == 0 {
		o.reads = d.IntN(o.sends + 1)
	}
	if o.request = min(o.request, 10_000); drawParts(d, &o.request) {
		o.sends, o.reads = min(o.sends, maxParts), min(o.reads, maxParts)
	}
}

// drawParts makes some items so large that they are sent in parts. Of these there are at most
// maxParts.
func drawParts(d Draw, size *int) bool {
	large := d.Has["large"] && d.IntN(2) == 0
	if large {
		*size = 16<<10 + d.IntN(40_000)
	}
	return large
}

const maxParts = 6

func drawHandler(d Draw, o *callOp) {
	if o.via == viaNobody {
		return
	}
	switch x := d.IntN(12); {
	case x <= 2 && d.Has["slow"] && o.via != viaOnLoop && !o.streams():
		o.does, o.sleep = doSleep, d.duration(100*time.Microsecond, 12)
	case x <= 4 && d.Has["slow"] && o.via != viaOnLoop:
		o.does = doWait
		if o.timeout == 0 && o.cancel == 0 {
			o.timeout = d.duration(time.Millisecond, 9)
		}
	case x == 5 && d.Has["error"]:
		o.does = doError
	case x == 6 && d.Has["error"]:
		o.does = doCode
	case x == 7 && d.Has["panic"]:
		o.does = doPanic
	case x == 8 && d.Has["panic"] && o.via != viaOnLoop:
		o.does = doExit
	case x <= 10 && d.Has["forward"] && o.via != viaOnLoop && !o.streams():
		o.does = doForward
	case x >= 9 && o.via == viaStream:
		o.does, o.items = doBehind, 4+d.IntN(10)
	}
}

// drawInnocents draws calls and streams that other clients must not disturb.
func drawInnocents(d Draw) []Op {
	calls := &callOp{
		start: start{d.within(d.Time / 2), d.Machines - 1}, via: viaCall, times: 3 + d.IntN(10), together: 1,
		request: 10 + d.IntN(100), reply: 10 + d.IntN(100), does: doAnswer, innocent: true,
	}
	streams := *calls
	streams.client, streams.via, streams.items, streams.take = 1, viaStream, d.IntN(4), -1
	return []Op{calls, &streams}
}

// drawCrowd multiplies a call to many concurrent ones, so that shared resources become short.
func drawCrowd(d Draw, o *callOp) {
	if !d.Has["crowd"] || d.IntN(5) > 0 {
		return
	}
	o.together, o.times = 8+d.IntN(40), 1
	o.request, o.reply = min(o.request, 4000), min(o.reply, 4000)
	if !o.streams() {
		return
	}
	o.items, o.sends = min(o.items, 4), min(o.sends, 4)
	o.take, o.reads = min(o.take, o.items), min(o.reads, o.sends)
	if d.IntN(2) == 0 { // open streams without arriving items
		o.pause = d.duration(time.Second/2, 2)
	}
}

// drawBetween gives a call an interceptor that does not simply call next.
func drawBetween(d Draw, o *callOp) {
	if !d.Has["between"] || d.IntN(4) > 0 || o.streams() || o.via == viaNobody || o.via == viaGo {
		return
	}
	o.between = betweens[d.IntN(len(betweens))]
}
