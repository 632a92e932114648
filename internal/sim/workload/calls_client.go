package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/oracle"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/states"
)

// The methods.
var (
	plainMethod      = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("sim.Plain", rpc.MethodConfig{})
	idempotentMethod = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("sim.Idempotent", rpc.MethodConfig{Idempotent: true})
	rawMethod        = rpc.NewRawMethod("sim.Raw", rpc.MethodConfig{})
	onLoopMethod     = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("sim.OnLoop", rpc.MethodConfig{})
	nobodysMethod    = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("sim.Nobodys", rpc.MethodConfig{})
	streamMethod     = rpc.NewStream[rpc.Bytes, rpc.Bytes]("sim.Stream", rpc.MethodConfig{})
)

// frame is how many bytes of a stream's window each item takes besides its own.
const frame = 16

// call is a call that was made.
type call struct {
	*oracle.Call
	p       *world.Process // its caller's
	machine int
	server  *service
	op      *callOp
	items   *oracle.Items    // of a stream
	runs    []*world.Process // where its handlers run
	client  *endpoint
	ends    int // its client's, when it began
	behaved *oracle.Behaved
}

// killed takes note that a process was killed.
func (c *call) killed(p *world.Process) {
	c.runs = slices.DeleteFunc(c.runs, func(q *world.Process) bool {
		if q == p {
			c.Lost()
		}
		return q == p
	})
}

// caller is a process with clients.
type caller struct {
	crew
	w       *calls
	rt      *rdma.Runtime
	machine int
	clients [perMachine]*endpoint
}

// endpoint is a client, which may be closed and made anew.
type endpoint struct {
	cfg    rpc.Config
	server *service
	c      *rpc.Client // nil: there is none now
	ends   int         // how often it was ended in the middle
	broken bool        // its connection's actor may have been stopped
}

// call is a machine's program that calls.
func (w *calls) call(p *world.Process, machine int) {
	if w.left[machine] {
		return
	}
	rt := w.open(p)
	if rt == nil {
		return
	}
	me := &caller{crew: crew{p: p}, w: w, rt: rt, machine: machine}
	w.callers[machine] = me
	for k := range me.clients {
		me.clients[k] = &endpoint{cfg: w.clients[machine][k], server: w.servers[(machine+k)%len(w.servers)]}
		me.run(func() { me.dial(me.clients[k]) })
	}
	for n, op := range w.ops {
		if at, mine := me.due(op); mine && !w.begun[n] {
			me.run(func() {
				p.Sleep(beginning + at - w.World.Now())
				w.begun[n] = true
				me.perform(op)
			})
		}
	}
	me.until(20*time.Millisecond, me.idle)
	for _, e := range me.clients {
		e.c.Close()
	}
	w.left[machine] = true
}

// due is when the caller performs an operation, if it does.
func (me *caller) due(op Op) (at time.Duration, mine bool) {
	switch o := op.(type) {
	case *callOp:
		return o.at, o.machine == me.machine
	case *endOp:
		return o.at, o.machine == me.machine && o.client >= 0
	}
	return 0, false
}

// dial connects a client for the first time.
func (me *caller) dial(e *endpoint) {
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
		w.fail("Dial: %v, want an Error that says that nothing was sent", err)
	}
}

// perform performs an operation.
func (me *caller) perform(op Op) {
	switch o := op.(type) {
	case *callOp:
		e := me.clients[o.client]
		for range o.times {
			me.once(e, o)
		}
	case *endOp:
		me.end(me.clients[o.client], o)
	}
}

// end ends a client in the middle, and makes another one.
func (me *caller) end(e *endpoint, o *endOp) {
	if o.how != endStop {
		me.reopen(e)
		return
	}
	for _, e := range me.clients {
		me.client(e)
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
	for _, e := range me.clients { // nobody knows whose it was
		me.reopen(e)
	}
}

// reopen closes a client and makes another one.
func (me *caller) reopen(e *endpoint) {
	w := me.w
	c := me.client(e)
	e.ends++
	e.c, e.broken = nil, false
	begin := w.World.Now()
	c.Close()
	if took := w.World.Now() - begin; took > 5*time.Second && !w.Disturbed(me.machine) {
		w.fail("machine %d: a client takes %v to Close", me.machine, took)
	}
	if n := c.InFlight(); n > 0 {
		w.fail("machine %d: a client has %d calls in flight behind Close", me.machine, n)
	}
	me.dial(e)
}

// client waits for a client.
func (me *caller) client(e *endpoint) *rpc.Client {
	me.until(5*time.Millisecond, func() bool { return e.c != nil })
	return e.c
}

// once makes a call.
func (me *caller) once(e *endpoint, o *callOp) {
	c := me.client(e)
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if o.timeout > 0 && o.via != viaGo {
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
	} else if o.cancel > 0 {
		ctx, cancel = context.WithCancel(ctx)
	}
	if o.cancel > 0 {
		me.run(func() {
			me.p.Sleep(o.cancel)
			cancel()
		})
	}
	x := me.w.enter(me.p, me.machine, e, o, ctx)
	switch o.via {
	case viaStream:
		me.stream(ctx, c, x)
	case viaGo:
		me.goes(ctx, c, x)
	case viaInnocent:
		me.behave(ctx, c, x)
	default:
		r, err := makeCall(ctx, c, x)
		me.w.outcome(x, r, err)
	}
	cancel()
}

// enter enters a call that is about to be made.
func (w *calls) enter(p *world.Process, machine int, e *endpoint, o *callOp, ctx context.Context) *call {
	now := w.World.Now()
	deadline := w.virtual(ctx)
	switch {
	case o.via == viaGo && o.timeout > 0:
		deadline = now + o.timeout
	case deadline == 0 && o.via != viaStream && e.cfg.Timeout > 0:
		deadline = now + e.cfg.Timeout
	}
	name := fmt.Sprintf("call %d of machine %d's client %d (%s, %d bytes for %d)", len(w.made), machine, o.client, o.via, o.request, o.reply)
	repeat := o.via == viaIdempotent && e.cfg.Retry.Attempts > 1
	x := &call{
		Call: w.ledger.Call(name, o.request, o.reply, deadline, repeat),
		p:    p, machine: machine, server: e.server, op: o, client: e, ends: e.ends,
	}
	if o.via == viaStream {
		window := e.cfg.StreamWindow
		if window == 0 {
			window = 64 << 10
		}
		x.items = x.Items(window, frame)
		if o.pause > 0 || o.take >= 0 {
			x.Slow() // its end is seen when what has come was received
		}
	}
	w.made = append(w.made, x)
	return x
}

// virtual is a context's deadline in the world's time; 0: it has none.
func (w *calls) virtual(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return w.World.Now() + time.Until(d)
	}
	return 0
}

// makeCall makes a call that waits for its answer.
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

// behave makes a call that must be answered, whatever others do.
func (me *caller) behave(ctx context.Context, c *rpc.Client, x *call) {
	w := me.w
	b := w.iso.Behaved(fmt.Sprintf("machine %d", me.machine))
	x.behaved = b
	b.Wants(w.World.Now(), 1)
	r, err := makeCall(ctx, c, x)
	if w.explained(x) {
		b.Excuse()
	}
	if err != nil {
		b.Ended(w.World.Now(), err.Error())
	}
	b.Gets(w.World.Now(), 1)
	b.Excuse()
	w.outcome(x, r, err)
	me.p.Sleep(3 * time.Millisecond)
}

// goes makes a call as actors do.
func (me *caller) goes(ctx context.Context, c *rpc.Client, x *call) {
	w, over := me.w, false
	pending := make(map[*rpc.Pending]bool)
	q := rpc.Bytes(x.Request())
	me.p.System().Root.Spawn(actor.PropsFromFunc(func(a actor.Context) {
		switch m := a.Message().(type) {
		case *actor.Started:
			pending[rpc.Go(a, c, plainMethod, &q, rpc.GoConfig{Timeout: x.op.timeout, Context: ctx})] = true
		case *rpc.Reply[rpc.Bytes]:
			if !pending[m.Call] {
				w.fail("a Reply of a call that was not made, or was answered")
			}
			delete(pending, m.Call)
			var r []byte
			if m.Value != nil {
				r = *m.Value
			}
			w.outcome(x, r, m.Err)
			over = true
			a.Stop(a.Self())
		}
	}, me.rt.OnLoop()))
	me.until(2*time.Millisecond, func() bool { return over })
}

// stream opens a stream and reads it.
func (me *caller) stream(ctx context.Context, c *rpc.Client, x *call) {
	w, o := me.w, x.op
	q := rpc.Bytes(x.Request())
	r, err := rpc.Open(ctx, c, streamMethod, &q)
	if err != nil {
		w.outcome(x, nil, err)
		return
	}
	defer r.Close()
	for n := 0; ; n++ {
		if n == o.take {
			me.p.Sleep(o.pause + 100*time.Millisecond)
			r.Close()
		}
		if o.pause > 0 {
			me.p.Sleep(o.pause)
		}
		item, err := r.Recv()
		if err != nil {
			w.outcome(x, nil, err)
			return
		}
		if o.does != doBehind {
			x.items.Item(w.World.Now(), *item)
		}
	}
}

// outcome enters a call's outcome.
func (w *calls) outcome(x *call, r []byte, err error) {
	now := w.World.Now()
	w.excuse(x)
	w.World.Trace("%s: call %d ends: %s", w.Name, x.Number(), outcomeName(err))
	if err == nil {
		x.Answered(now, r)
		return
	}
	e, ok := errors.AsType[*rpc.Error](err)
	how := ""
	switch {
	case errors.Is(err, io.EOF) && !ok:
	case !ok:
		w.fail("%v is no Error", err)
		return
	default:
		how = codeName(e.Code)
	}
	if !ok || e.Fate == rpc.FateAnswered {
		w.answered(x, how)
		return
	}
	switch {
	case e.Fate.NotExecuted():
		x.NotExecuted(now)
	default:
		x.Unknown(now)
	}
	if why := w.unexplained(x, e); why != "" {
		w.fail("call %d (%s): %v: %s", x.Number(), x.op, err, why)
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

// answered enters that the server has answered: how, or in order if that is empty.
func (w *calls) answered(x *call, how string) {
	now := w.World.Now()
	switch how {
	case codeName(rpc.CodeTooLarge), codeName(rpc.CodeOverloaded):
		x.Executed(now)
	default:
		x.Refused(now, how)
		if x.items != nil && x.op.does != doBehind {
			x.items.Ended(now, how)
		}
	}
}

// codeName names a code.
func codeName(c rpc.Code) string { return fmt.Sprintf("code %d", c) }

// explained reports whether a fault, or an end in the middle, may have hit a call.
func (w *calls) explained(x *call) bool {
	return w.Disturbed(x.machine, x.server.n) || x.client.ends > x.ends || x.client.broken || x.server.ends > 0
}

// unexplained says what is wrong with a failure that no handler has caused. Empty: nothing.
func (w *calls) unexplained(x *call, e *rpc.Error) string {
	now, o := w.World.Now(), x.op
	switch e.Code {
	case rpc.CodeDeadline:
		// of a stream the client's time-out limits the wait for a connection
		waited := o.via == viaStream && x.client.cfg.Timeout > 0 && e.Fate == rpc.FateNotSent
		if d := x.Deadline(); !waited && (d == 0 || now < d-time.Millisecond) {
			return fmt.Sprintf("its deadline is %v", d)
		}
	case rpc.CodeCanceled:
		if o.cancel == 0 && o.take < 0 {
			return "nobody has cancelled it"
		}
	case rpc.CodeUnknownMethod:
		if o.via != viaNobody {
			return "it has a handler"
		}
	case rpc.CodeTooLarge, rpc.CodeOverloaded:
		if o.via == viaInnocent && !w.explained(x) {
			return "it is small, and the only one"
		}
	case rpc.CodeUnavailable, rpc.CodeClosed, rpc.CodeDraining:
		if !w.explained(x) {
			return "nothing has happened to its connection"
		}
	default:
		return "nothing explains that"
	}
	return ""
}
