package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/states"
)

// The methods.
var (
	plainMethod      = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("sim.Plain")
	idempotentMethod = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("sim.Idempotent", rpc.MethodConfig{Idempotent: true})
	rawMethod        = rpc.NewRawMethod("sim.Raw")
	onLoopMethod     = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("sim.OnLoop")
	nobodysMethod    = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("sim.Nobodys")
	streamMethod     = rpc.NewStream[rpc.Bytes, item]("sim.Stream")
	uploadMethod     = rpc.NewClientStream[item, rpc.Bytes]("sim.Upload")
	bidiMethod       = rpc.NewBidiStream[item, item]("sim.Bidi")
)

// frame is how many bytes of a stream's window each item takes besides its own.
const frame = 16

// call is a call that was made.
type call struct {
	*oracle.Call
	p       *world.Process // of its caller
	machine int
	server  *service
	op      *callOp
	items   *oracle.Items    // of the server's stream
	uploads *oracle.Items    // of the client's
	left    bool             // its caller has closed the stream
	runs    []*world.Process // processes that run its handlers
	client  *endpoint
	ends    int           // ends of its client, when it began
	at      time.Duration // when it began
	behaved *oracle.Behaved
}

// handleKilled handles the end of a process.
func (c *call) handleKilled(p *world.Process) {
	c.runs = slices.DeleteFunc(c.runs, func(q *world.Process) bool {
		if q == p {
			c.Lost()
		}
		return q == p
	})
}

// caller is a process with clients.
type caller struct {
	*crew
	w       *calls
	machine int
	clients [perMachine]*endpoint
	ending  bool // an endOp is under way
}

// endpoint is a client, which may be closed and replaced.
type endpoint struct {
	cfg    rpc.ClientConfig
	server *service
	c      *rpc.Client // nil: none now
	ends   int         // how often it was ended in the middle
	broken bool        // its connection's actor may have been stopped
}

// runCaller runs the program of a machine that calls.
func (w *calls) runCaller(p *world.Process, machine int) {
	c := w.newCrew(p)
	if c == nil {
		return
	}
	me := &caller{crew: c, w: w, machine: machine}
	for k := range me.clients {
		me.clients[k] = &endpoint{cfg: w.clients[machine][k], server: w.servers[(machine+k)%len(w.servers)]}
		me.startGoroutine(func() { me.dialFirst(me.clients[k]) })
	}
	for n, op := range w.ops {
		if at, own := startOn(machine, op); own {
			me.performAt(at, &w.begun[n], func() { me.performOp(op) })
		}
	}
	me.waitUntil(20*time.Millisecond, me.isIdle)
	me.quiet()
	for _, e := range me.clients {
		me.awaitClient(e).Close() // its dial may still be under way
	}
	w.awaitReleased(p, me.rt)
	w.Programs[machine].Finished = true
}

// quiet waits until no call is in flight for the clients, or fails the world, unless a fault hits
// it. Nothing is under way.
func (me *caller) quiet() {
	inFlight := func() (n int) {
		for _, e := range me.clients {
			if e.c != nil {
				n += e.c.InFlight()
			}
		}
		return n
	}
	for range int(settles / time.Second) { // which a clock that jumps does not end
		if me.w.Disturbed() || inFlight() == 0 {
			return
		}
		me.p.Sleep(time.Second)
	}
	me.w.failWorld("machine %d: %d calls are in flight, and nobody waits for them", me.machine, inFlight())
}

// dialFirst connects a client for the first time.
func (me *caller) dialFirst(e *endpoint) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		c, err := rpc.Dial(ctx, me.rt, me.w.Addr(e.server.n, 0), e.cfg)
		cancel()
		if err == nil {
			e.c = c
			return
		}
		me.w.dialFailed(err)
		me.p.Sleep(100 * time.Millisecond)
	}
}

func (w *calls) dialFailed(err error) {
	if r, ok := errors.AsType[*rpc.Error](err); !ok || r.Fate != rpc.FateNotSent {
		w.failWorld("Dial: %v, want an Error that says that nothing was sent", err)
	}
}

// performOp performs an operation.
func (me *caller) performOp(op Op) {
	switch o := op.(type) {
	case *callOp:
		e := me.clients[o.client]
		for range o.together {
			me.startGoroutine(func() {
				for range o.times {
					me.callOnce(e, o)
				}
			})
		}
	case *endOp:
		me.waitUntil(5*time.Millisecond, func() bool { return !me.ending })
		me.ending = true
		me.closeMidway(me.clients[o.client], o)
		me.ending = false
	}
}

// closeMidway ends a client in the middle, and replaces it.
func (me *caller) closeMidway(e *endpoint, o *endOp) {
	switch o.how {
	case endClose:
		me.reopenClient(e)
		return
	case endBelow:
		me.shutDownBelow()
		return
	}
	for _, e := range me.clients {
		me.awaitClient(e)
		e.ends++
		e.broken = true
	}
	for _, id := range me.rt.Inspect() {
		if id.State != states.Connected || id.Owner == nil {
			continue
		}
		pid := id.PID
		if o.at&1 == 0 {
			pid = id.Owner
		}
		me.p.System().Root.Stop(pid)
		break
	}
	me.p.Sleep(50 * time.Millisecond)
	for _, e := range me.clients { // it is unknown whose it was
		me.reopenClient(e)
	}
}

// shutDownBelow shuts the runtime down before the clients, closes them, and continues with another
// runtime.
func (me *caller) shutDownBelow() {
	w := me.w
	var all [perMachine]*rpc.Client
	for k, e := range me.clients {
		all[k] = me.awaitClient(e)
	}
	for _, e := range me.clients {
		e.ends++
		e.c, e.broken = nil, false
	}
	begin := w.World.Now()
	err := me.rt.Shutdown(context.Background())
	for _, c := range all {
		c.Close()
	}
	if took := w.World.Now() - begin; took > 5*time.Second && !w.Disturbed() {
		w.failWorld("machine %d: a runtime, and the clients on it, end after %v (%v)", me.machine, took, err)
	}
	rt := w.openRuntime(me.p)
	if rt == nil {
		return
	}
	me.rt = rt
	for _, e := range me.clients {
		me.dialFirst(e)
	}
}

// reopenClient closes a client and replaces it.
func (me *caller) reopenClient(e *endpoint) {
	w := me.w
	c := me.awaitClient(e)
	e.ends++
	e.c, e.broken = nil, false
	begin := w.World.Now()
	c.Close()
	if took := w.World.Now() - begin; took > 5*time.Second && !w.Disturbed(me.machine) {
		w.failWorld("machine %d: a client takes %v to Close", me.machine, took)
	}
	if n := c.InFlight(); n > 0 {
		w.failWorld("machine %d: a client has %d calls in flight behind Close", me.machine, n)
	}
	me.dialFirst(e)
}

// awaitClient waits for a client.
func (me *caller) awaitClient(e *endpoint) *rpc.Client {
	me.waitUntil(5*time.Millisecond, func() bool { return e.c != nil })
	return e.c
}

// callOnce makes a call.
func (me *caller) callOnce(e *endpoint, o *callOp) {
	c := me.awaitClient(e)
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if o.timeout > 0 && o.via != viaGo {
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
	} else if o.cancel > 0 {
		ctx, cancel = context.WithCancel(ctx)
	}
	if o.cancel > 0 {
		me.startGoroutine(func() {
			me.p.Sleep(o.cancel)
			cancel()
		})
	}
	x := me.w.recordCall(me.p, me.machine, e, o, ctx)
	if o.between != "" {
		ctx = context.WithValue(ctx, betweenKey{}, x)
	}
	switch {
	case o.via == viaStream:
		me.callStream(ctx, c, x)
	case o.via == viaUpload:
		me.upload(ctx, c, x)
	case o.via == viaBidi:
		me.bidi(ctx, c, x)
	case o.via == viaGo:
		me.callFromActor(ctx, c, x)
	case o.innocent:
		me.callBehaved(ctx, c, x)
	default:
		me.w.tryCall(x, func() {
			r, err := makeCall(ctx, c, x)
			me.w.recordOutcome(x, r, err)
		})
	}
	cancel()
}

// recordCall records a call that is about to be made.
func (w *calls) recordCall(p *world.Process, machine int, e *endpoint, o *callOp, ctx context.Context) *call {
	now := w.World.Now()
	deadline := w.virtualDeadline(ctx)
	switch {
	case o.via == viaGo && o.timeout > 0:
		deadline = now + o.timeout
	case deadline == 0 && !o.streams() && e.cfg.Timeout > 0:
		deadline = now + e.cfg.Timeout
	}
	name := fmt.Sprintf("call %d of machine %d's client %d (%s, %d bytes for %d)", len(w.made), machine, o.client, o.via, o.request, o.reply)
	repeat := o.via == viaIdempotent && e.cfg.Retry.Attempts > 1
	x := &call{
		Call: w.ledger.Call(name, o.request, o.reply, deadline, repeat),
		p:    p, machine: machine, server: e.server, op: o, client: e, ends: e.ends, at: now,
	}
	if o.streams() {
		x.items = x.Items(cmp.Or(e.cfg.StreamWindow, 64<<10), frame)
		x.uploads = x.Uploads(e.server.window(), frame)
		if o.pause > 0 || o.take >= 0 {
			x.Slow() // its end is seen after all items that have arrived
		}
	}
	w.made = append(w.made, x)
	return x
}

// virtualDeadline returns a context's deadline in the world's time; 0: none.
func (w *calls) virtualDeadline(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return w.World.Now() + time.Until(d)
	}
	return 0
}

// makeCall makes a call and waits for its answer.
func makeCall(ctx context.Context, c *rpc.Client, x *call) ([]byte, error) {
	q := rpc.Bytes(x.Request())
	var r *rpc.Bytes
	var err error
	switch x.op.via {
	case viaRaw:
		return rpc.CallRaw(ctx, c, rawMethod, q, nil)
	case viaIdempotent:
		r, err = rpc.Call(ctx, c, idempotentMethod, &q)
	case viaOnLoop:
		r, err = rpc.Call(ctx, c, onLoopMethod, &q)
	case viaNobody:
		r, err = rpc.Call(ctx, c, nobodysMethod, &q)
	default:
		r, err = rpc.Call(ctx, c, plainMethod, &q)
	}
	if err != nil {
		return nil, err
	}
	return *r, nil
}

// callBehaved makes a call that must be answered, regardless of others.
func (me *caller) callBehaved(ctx context.Context, c *rpc.Client, x *call) {
	w := me.w
	b := w.iso.Behaved(fmt.Sprintf("machine %d", me.machine))
	x.behaved = b
	b.Wants(w.World.Now(), 1)
	r, err := makeCall(ctx, c, x)
	if w.isExplained(x) {
		b.Excuse()
	}
	if err != nil {
		b.Ended(w.World.Now(), err.Error())
	}
	b.Gets(w.World.Now(), 1)
	b.Excuse()
	w.recordOutcome(x, r, err)
	me.p.Sleep(3 * time.Millisecond)
}

// callFromActor makes a call from an actor.
func (me *caller) callFromActor(ctx context.Context, c *rpc.Client, x *call) {
	w, rt, over := me.w, me.rt, false
	pending := make(map[*rpc.Pending]bool)
	q := rpc.Bytes(x.Request())
	me.p.System().Root.Spawn(actor.PropsFromFunc(func(a actor.Context) {
		switch m := a.Message().(type) {
		case *actor.Started:
			pending[rpc.Go(a, c, plainMethod, &q, rpc.GoConfig{Timeout: x.op.timeout, Context: ctx})] = true
		case *rpc.Reply[rpc.Bytes]:
			if !pending[m.Call] {
				w.failWorld("a Reply of a call that was not made, or was answered")
			}
			delete(pending, m.Call)
			var r []byte
			if m.Value != nil {
				r = *m.Value
			}
			w.recordOutcome(x, r, m.Err)
			over = true
			a.Stop(a.Self())
		}
	}, rt.OnLoop()))
	me.waitUntil(2*time.Millisecond, func() bool { return over || me.rt != rt })
	if !over { // its loop has ended
		x.Gone()
	}
}

// callStream opens a stream and reads it.
func (me *caller) callStream(ctx context.Context, c *rpc.Client, x *call) {
	w := me.w
	q := rpc.Bytes(x.Request())
	r, err := rpc.Open(ctx, c, streamMethod, &q)
	if err != nil {
		w.recordOutcome(x, nil, err)
		return
	}
	me.receive(x, r)
}

// receive receives a stream's items.
func (me *caller) receive(x *call, r *rpc.Receiver[item]) {
	w, o := me.w, x.op
	defer r.Close()
	for n := 0; ; n++ {
		if n == o.take {
			me.p.Sleep(o.pause + 100*time.Millisecond)
			r.Close()
		}
		if o.pause > 0 {
			me.p.Sleep(o.pause)
		}
		item, err := r.Receive()
		if err != nil {
			w.recordOutcome(x, nil, err)
			return
		}
		if o.does != doBehind {
			x.items.Item(w.World.Now(), item.b)
		}
	}
}

// recordOutcome records a call's outcome.
func (w *calls) recordOutcome(x *call, r []byte, err error) {
	now, o := w.World.Now(), x.op
	w.excuseCall(x)
	w.World.Trace("%s: call %d ends: %s", w.Name, x.Number(), outcomeName(err))
	if err == nil {
		x.Answered(now, r)
		return
	}
	e, ok := errors.AsType[*rpc.Error](err)
	how := ""
	switch {
	case errors.Is(err, io.EOF) && !ok:
	case errors.Is(err, errOfService) && !ok && o.between == clientRefuses:
		x.NotExecuted(now)
		return
	case !ok:
		w.failWorld("%v is no Error", err)
		return
	default:
		how = codeName(e.Code)
	}
	if !ok || e.Fate == rpc.FateAnswered {
		w.recordAnswer(x, how)
		return
	}
	switch {
	case e.Fate.NotExecuted():
		x.NotExecuted(now)
	default:
		x.Unknown(now)
		w.addDoubt(x, e)
	}
	if why := w.describeUnexplained(x, e); why != "" {
		w.failWorld("call %d (%s): %v: %s", x.Number(), o, err, why)
	}
}

func outcomeName(err error) string {
	switch e, ok := errors.AsType[*rpc.Error](err); {
	case err == nil:
		return "answered"
	case ok:
		return fmt.Sprintf("%s, %v", codeName(e.Code), e.Fate)
	}
	return err.Error()
}
