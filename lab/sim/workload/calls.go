package workload

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/rpc"
)

// Calls is the workload of package rpc: servers whose handlers do everything that handlers may do,
// and clients that call them, open streams, give up, and close.
var Calls = &Kind{
	Name: "calls",
	Verbs: []string{
		"large", "stream", "upload", "deadline", "cancel", "slow", "error", "panic", "forward", "actor", "many",
		"innocent", "close", "stop", "drain", "crowd", "between", "runtime",
	},
	Draw: drawCalls,
	New:  func(e *Env, ops []Op) Workload { return newCalls(e, ops) },
}

// perMachine is the number of clients per machine.
const perMachine = 2

// Actions of handlers.
const (
	doAnswer  = "answers"
	doSleep   = "sleeps"
	doWait    = "waits for its context"
	doError   = "returns an error"
	doCode    = "returns a service's error"
	doPanic   = "panics"
	doExit    = "calls Goexit"
	doForward = "calls another server"
	doBehind  = "sends behind its end"
)

// How calls are made.
const (
	viaCall       = "Call"
	viaIdempotent = "Call, which may be repeated"
	viaRaw        = "CallRaw"
	viaOnLoop     = "Call of a handler on the loop"
	viaGo         = "Go"
	viaNobody     = "Call of what nobody handles"
	viaStream     = "Open"
	viaUpload     = "OpenClientStream"
	viaBidi       = "OpenBidiStream"
)

// callOp is a number of calls, one after the other.
type callOp struct {
	start
	client          int
	via             string
	times           int
	together        int // goroutines that make so many calls each
	innocent        bool
	between         string        // action of an interceptor; empty: none
	request, reply  int           // bytes; of an item, if that side sends a stream
	timeout, cancel time.Duration // 0: none
	does            string
	sleep           time.Duration // of the handler; of a stream's, before each item
	// for the server's items: how many are sent; how many are received before the stream is closed,
	// negative: all; how long the receiver sleeps before each
	items, take int
	pause       time.Duration
	// for the client's items: how many are sent; how many the handler receives before it goes on,
	// negative: all; whether the client closes the stream instead of ending them
	sends, reads int
	leaves       bool
}

// streams reports whether a side sends a stream. uploads reports whether the client does.
func (o *callOp) streams() bool { return o.via == viaStream || o.uploads() }

func (o *callOp) uploads() bool { return o.via == viaUpload || o.via == viaBidi }

func (o *callOp) String() string {
	s := fmt.Sprintf("at %v machine %d's client %d makes %d times a %s, of %d bytes for %d", o.at, o.machine, o.client, o.times, o.via, o.request, o.reply)
	if o.timeout > 0 {
		s += fmt.Sprintf(", within %v", o.timeout)
	}
	if o.cancel > 0 {
		s += fmt.Sprintf(", cancelled after %v", o.cancel)
	}
	if o.together > 1 {
		s += fmt.Sprintf(", by %d at once", o.together)
	}
	if o.between != "" {
		s += "; " + o.between
	}
	s += fmt.Sprintf("; its handler %s", o.does)
	if o.sleep > 0 {
		s += fmt.Sprintf(" for %v", o.sleep)
	}
	if o.innocent {
		s += ", which must get on"
	}
	if o.streams() {
		s += fmt.Sprintf("; %d items, %d are taken, each after %v", o.items, o.take, o.pause)
	}
	if o.uploads() {
		s += fmt.Sprintf("; %d are sent, %d are taken, then closed: %v", o.sends, o.reads, o.leaves)
	}
	return s
}

// endOp closes or stops something in the middle.
type endOp struct {
	start
	client  int // negative: the machine's server
	how     string
	timeout time.Duration // of a Drain
}

// How things end.
const (
	endClose = "closed"
	endStop  = "stopped: its connection's actor is"
	endDrain = "drained"
	endBelow = "closed behind its runtime"
)

func (o *endOp) String() string {
	who := fmt.Sprintf("client %d", o.client)
	if o.client < 0 {
		who = "server"
	}
	s := fmt.Sprintf("at %v machine %d's %s is %s", o.at, o.machine, who, o.how)
	if o.how == endDrain {
		s += fmt.Sprintf(", within %v", o.timeout)
	}
	return s
}

// serverCount returns how many of the machines have servers: the first ones.
func serverCount(machines int) int {
	if machines < 4 {
		return 1
	}
	return 2
}

// calls is the workload.
type calls struct {
	*Env
	ops     []Op
	begun   []bool  // per operation
	made    []*call // indexed by number
	ledger  oracle.Calls
	bounds  oracle.Bounds
	iso     oracle.Isolation
	clients [][perMachine]rpc.ClientConfig // per machine
	servers []*service                     // per machine
	looked  time.Duration                  // when all calls were judged last
}

// callLate and callTransit are how long immediate actions may take: goroutines wait for their turn.
const (
	callLate    = 200 * time.Millisecond
	callTransit = 400 * time.Millisecond
)

func newCalls(e *Env, ops []Op) *calls {
	n := len(e.Machines)
	w := &calls{
		Env: e, ops: ops, begun: make([]bool, len(ops)),
		clients: make([][perMachine]rpc.ClientConfig, n),
		ledger:  oracle.Calls{Fail: e.failWorld, Late: callLate, Transit: callTransit},
		bounds:  oracle.Bounds{Fail: e.failWorld},
		iso:     oracle.Isolation{Fail: e.failWorld, Within: 3 * time.Second},
	}
	innocent := false
	for _, op := range ops {
		if o, ok := op.(*callOp); ok && o.innocent {
			innocent = true
		}
	}
	for i := range serverCount(n) {
		w.servers = append(w.servers, &service{w: w, n: i, cfg: w.drawServer(innocent), drains: e.Rand.IntN(2) == 0})
	}
	for m := range w.clients {
		for k := range perMachine {
			w.clients[m][k] = w.drawClient()
		}
	}
	return w
}

// drawServer draws limits. They leave room for innocent calls, if there are any.
func (w *calls) drawServer(innocent bool) rpc.ServerConfig {
	cfg := rpc.ServerConfig{
		MaxCalls: oneOf(w.Rand, 0, 0, 1, 2, 4, 16), MaxStreams: oneOf(w.Rand, 0, 0, 1, 2), Memory: oneOf(w.Rand, 0, 1<<16, 1<<18),
		MaxMessage: oneOf(w.Rand, 64<<10, 1<<10, 4<<10, 16<<10, 200<<10), Credits: oneOf(w.Rand, 0, 1, 2, 4),
		MaxCallsInAll: oneOf(w.Rand, 0, 2, 4, 16), MaxStreamsInAll: oneOf(w.Rand, 0, 1, 4, 16), StreamWindow: oneOf(w.Rand, 0, 1<<10, 4<<10),
		MaxWait: oneOf(w.Rand, 0, 0, 20*time.Millisecond, 300*time.Millisecond),
	}
	if innocent {
		cfg.MaxCallsInAll, cfg.MaxStreamsInAll = max(cfg.MaxCallsInAll, 32), max(cfg.MaxStreamsInAll, 32)
		w.liftLimits(&cfg.MaxCalls, &cfg.MaxStreams)
	}
	cfg.Interceptors = w.newInterceptors(true)
	return cfg
}

func (w *calls) drawClient() rpc.ClientConfig {
	cfg := rpc.ClientConfig{
		MaxCalls: oneOf(w.Rand, 0, 0, 1, 2, 8), MaxStreams: oneOf(w.Rand, 0, 0, 1, 2), Memory: oneOf(w.Rand, 0, 0, 1<<16),
		MaxMessage: oneOf(w.Rand, 64<<10, 1<<10, 4<<10, 200<<10), Credits: oneOf(w.Rand, 0, 1, 2, 4),
		StreamWindow: oneOf(w.Rand, 0, 1<<10, 4<<10), Timeout: oneOf(w.Rand, 0, 0, 500*time.Millisecond), WaitForReady: oneOf(w.Rand, true, false),
		Retry: rpc.Retry{Attempts: oneOf(w.Rand, 0, 2, 4), Backoff: 5 * time.Millisecond},
	}
	cfg.Backoff.First, cfg.Backoff.Most, cfg.Backoff.Stable = 10*time.Millisecond, 300*time.Millisecond, time.Second
	w.liftLimits(&cfg.MaxCalls, &cfg.MaxStreams)
	cfg.Interceptors = w.newInterceptors(false)
	return cfg
}

// liftLimits removes the limits of a connection in half of the worlds, so that the shared limits
// become short.
func (w *calls) liftLimits(calls, streams *int) {
	if w.Rand.IntN(2) == 0 {
		*calls, *streams = 0, 0
	}
}

// Start implements Workload.
func (w *calls) Start() {
	for i, s := range w.servers {
		w.Env.Start(i, s.runServer)
	}
	for m := len(w.servers); m < len(w.Machines); m++ {
		w.Env.Start(m, func(p *world.Process) { w.runCaller(p, m) })
	}
}

// callersDone reports whether all callers have ended.
func (w *calls) callersDone() bool { return w.areFinished(len(w.servers)) }

// Done implements Workload.
func (w *calls) Done() bool {
	if now := w.World.Now(); now >= w.looked+callLate/4 {
		w.looked = now
		for _, x := range w.made {
			w.excuseCall(x)
		}
		w.ledger.Check(now)
	}
	return w.areFinished(0)
}

// excuseCall records whether faults have hit a call's machines.
func (w *calls) excuseCall(x *call) {
	if w.Disturbed(x.machine) {
		x.Slow()
	}
	if w.Disturbed(x.server.n) {
		x.Far()
	}
}

// Check implements Workload.
func (w *calls) Check() {
	w.ledger.End(w.World.Now())
	for _, x := range w.made {
		if x.behaved != nil && w.isExplained(x) {
			x.behaved.Excuse()
		}
	}
	w.iso.Check(w.World.Now())
	if r := w.ledger.Running(); len(r) > 0 {
		w.failWorld("handlers run although the servers have ended: %v", r)
	}
}

// Killed implements Killer.
func (w *calls) Killed(p *world.Process) {
	for _, c := range w.made {
		if c.p == p {
			c.Gone()
		}
		c.handleKilled(p)
	}
	for _, s := range w.servers {
		if s.p == p {
			for _, i := range s.all { // when the process's runtime shuts down, at the end
				p.Go(i.srv.Close)
			}
			s.p, s.now, s.all = nil, nil, nil
		}
	}
}
