package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/rpc"
)

// errOfService is an error that handlers return.
var errOfService = rpc.RegisterCode(rpc.FirstCode+7471, "the simulation's")

// service is the program of a machine that answers calls.
type service struct {
	w      *calls
	n      int // its machine
	cfg    rpc.ServerConfig
	drains bool // at the end, instead of Close

	p    *world.Process
	now  *instance
	all  []*instance // of the process
	ends int         // how often it was ended in the middle

	cutAt    time.Duration // when it last cut connections off; 0: never
	draining bool          // a Drain in the middle is under way
	doubts   []func()      // judged when it is not draining
}

// instance is a server.
type instance struct {
	s              *service
	srv            *rpc.Server
	ended          bool
	calls, streams int // running handlers, on goroutines
	bytes          int // of their requests and windows
	peers          map[string]*occupied
}

// occupied counts the running handlers of a connection.
type occupied struct{ calls, streams int }

// window returns how many bytes of a client's stream it accepts ahead of its handler.
func (s *service) window() int { return cmp.Or(s.cfg.StreamWindow, 64<<10) }

// runServer runs the program of a machine with a server.
func (s *service) runServer(p *world.Process) {
	w := s.w
	c := w.newCrew(p)
	if c == nil {
		return
	}
	s.p, s.all = p, nil
	me := &caller{crew: c, w: w, machine: s.n}
	next := &endpoint{cfg: w.clients[s.n][0], server: w.servers[(s.n+1)%len(w.servers)]}
	if len(w.servers) > 1 {
		me.startGoroutine(func() { s.dialNext(me, next) })
	}
	for n, op := range w.ops {
		if at, own := startOn(s.n, op); own {
			me.performAt(at, &w.begun[n], func() { s.closeMidway(p, op.(*endOp)) })
		}
	}
	for !w.callersDone() {
		i := &instance{s: s, srv: rpc.NewServer(me.rt, s.cfg), peers: make(map[string]*occupied)}
		i.registerHandlers(p, me, next)
		s.now, s.all = i, append(s.all, i)
		me.startGoroutine(func() { i.serveCalls(p) })
		me.waitUntil(20*time.Millisecond, func() bool { return i.ended || w.callersDone() })
		if !i.ended {
			s.closeAfterLast(i)
		}
	}
	me.waitUntil(20*time.Millisecond, func() bool { return me.isIdle() && s.countHandlers() == 0 })
	if next.c != nil {
		next.c.Close()
	}
	w.awaitReleased(p, me.rt)
	w.Programs[s.n].Finished = true
}

// countHandlers returns how many handlers run. They may continue when their server has ended.
func (s *service) countHandlers() (n int) {
	for _, i := range s.all {
		n += i.calls + i.streams
	}
	return n
}

// serveCalls serves until the server has ended. Serve listens again after a reset of its device,
// but returns if there is no device when it starts.
func (i *instance) serveCalls(p *world.Process) {
	for {
		err := i.srv.Serve(context.Background(), i.s.w.Addr(i.s.n, 0))
		if errors.Is(err, rpc.ErrClosed) {
			return
		}
		i.s.w.World.Trace("%s: machine %d's server does not listen", i.s.w.Name, i.s.n)
		p.Sleep(50 * time.Millisecond)
		select {
		case <-i.srv.Draining():
			return
		default:
		}
	}
}

// dialNext connects to the next server, unless all callers end first.
func (s *service) dialNext(me *caller, next *endpoint) {
	for !s.w.callersDone() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := rpc.Dial(ctx, me.rt, s.w.Addr(next.server.n, 0), next.cfg)
		cancel()
		if err == nil {
			next.c = c
			return
		}
		s.w.dialFailed(err)
		me.p.Sleep(100 * time.Millisecond)
	}
}

// closeAfterLast ends the server after the last call.
func (s *service) closeAfterLast(i *instance) {
	if !s.drains {
		s.cutAt = s.w.World.Now()
		i.srv.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// a handler may wait for the end of a connection whose client was cut off
	if err := i.srv.Shutdown(ctx); err != nil && !s.w.Disturbed() {
		s.w.failWorld("machine %d's server does not drain when nobody calls any more: %v", s.n, err)
	}
}

// closeMidway ends the server in the middle. Another one follows.
func (s *service) closeMidway(p *world.Process, o *endOp) {
	for s.now == nil || s.now.ended {
		if s.w.callersDone() {
			return
		}
		p.Sleep(20 * time.Millisecond)
	}
	i, w := s.now, s.w
	s.ends++
	begin, most := w.World.Now(), time.Second
	if o.how == endDrain {
		ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
		s.draining = true
		err := i.srv.Shutdown(ctx)
		cancel()
		if s.draining = false; err != nil {
			s.cutAt = s.w.World.Now()
		}
		s.judgeDoubts()
		most = o.timeout + time.Second + callLate
		w.World.Trace("%s: drained: %v", w.Name, err)
	} else {
		s.cutAt = s.w.World.Now()
		i.srv.Close()
	}
	if took := w.World.Now() - begin; took > most && !w.Disturbed(s.n) {
		w.failWorld("machine %d's server is %s after %v, want %v at most", s.n, o.how, took, most)
	}
	i.ended = true
}

// registerHandlers registers the handlers.
func (i *instance) registerHandlers(p *world.Process, me *caller, next *endpoint) {
	h := &handling{i: i, p: p, me: me, next: next}
	unary := func(ctx context.Context, q *rpc.Bytes) (*rpc.Bytes, error) {
		b, err := h.handleCall(ctx, *q, i.recordHandler(ctx, len(*q), false))
		r := rpc.Bytes(b)
		return &r, err
	}
	rpc.Handle(i.srv, plainMethod, unary)
	rpc.Handle(i.srv, idempotentMethod, unary)
	rpc.Handle(i.srv, onLoopMethod, func(ctx context.Context, q *rpc.Bytes) (*rpc.Bytes, error) {
		b, err := h.handleCall(ctx, *q, func() {})
		r := rpc.Bytes(b)
		return &r, err
	}, rpc.HandlerConfig{OnLoop: true})
	rpc.HandleRaw(i.srv, rawMethod, func(ctx context.Context, q, reply []byte) ([]byte, error) {
		b, err := h.handleCall(ctx, q, i.recordHandler(ctx, len(q), false))
		return append(reply, b...), err
	})
	rpc.HandleClientStream(i.srv, uploadMethod, func(ctx context.Context, in *rpc.Receiver[item]) (*rpc.Bytes, error) {
		x, err := h.upload(ctx, in, nil, i.recordHandler(ctx, i.s.window(), true))
		if err != nil {
			return nil, err
		}
		r := rpc.Bytes(x.Reply())
		return &r, nil
	})
	rpc.HandleBidiStream(i.srv, bidiMethod, func(ctx context.Context, in *rpc.Receiver[item], out *rpc.Sender[item]) error {
		_, err := h.upload(ctx, in, out, i.recordHandler(ctx, i.s.window(), true))
		return err
	})
	rpc.HandleStream(i.srv, streamMethod, func(ctx context.Context, q *rpc.Bytes, out *rpc.Sender[item]) error {
		return h.handleStream(ctx, *q, out, i.recordHandler(ctx, len(*q), true))
	})
}

// recordHandler records that a handler runs on a goroutine, and checks usage against all limits.
// Its request, or the window of its client's items, has that many bytes. free enters its end.
func (i *instance) recordHandler(ctx context.Context, bytes int, stream bool) (free func()) {
	peer := "nobody"
	if info := rpc.InfoOf(ctx); info != nil {
		peer = info.Peer.String()
	}
	c := i.peers[peer]
	if c == nil {
		c = &occupied{}
		i.peers[peer] = c
	}
	add := func(n int) {
		if stream {
			i.streams, c.streams = i.streams+n, c.streams+n
		} else {
			i.calls, c.calls = i.calls+n, c.calls+n
		}
		i.bytes += n * bytes
	}
	add(1)
	cfg := i.s.cfg
	each := cmp.Or(cfg.MaxCalls, 1024)
	i.recordUsage("handlers of calls", i.calls, cmp.Or(cfg.MaxCallsInAll, 4096))
	i.recordUsage("handlers of streams", i.streams, cmp.Or(cfg.MaxStreamsInAll, 4096))
	i.recordUsage("handlers of a connection", c.calls+c.streams, each)
	i.recordUsage("streams of a connection", c.streams, cmp.Or(cfg.MaxStreams, (each+1)/2))
	i.recordUsage("bytes of requests and windows", i.bytes, max(cmp.Or(cfg.Memory, 256<<20), 4*cfg.MaxMessage)+len(i.peers)*(64<<10))
	return func() {
		if add(-1); *c == (occupied{}) {
			delete(i.peers, peer)
		}
	}
}

// recordUsage records the usage of a limited resource.
func (i *instance) recordUsage(what string, n, limit int) {
	i.s.w.bounds.Sample(i.s.w.World.Now(), fmt.Sprintf("%s of machine %d's server", what, i.s.n), n, limit)
}

// handling is the environment of handlers.
type handling struct {
	i    *instance
	p    *world.Process
	me   *caller
	next *endpoint // to the next server
}

// recordBegin records that a handler was called. It returns nil for nonsense.
func (h *handling) recordBegin(ctx context.Context, q []byte) *call {
	w := h.i.s.w
	w.excuseRequest(q)
	c := w.ledger.Begins(w.World.Now(), q, w.virtualDeadline(ctx))
	if c == nil {
		return nil
	}
	x := w.made[c.Number()]
	x.runs = append(x.runs, h.p)
	return x
}

// excuseRequest calls excuseCall for the call whose request is q.
func (w *calls) excuseRequest(q []byte) {
	if n := oracle.NumberOf(q); n < uint64(len(w.made)) {
		w.excuseCall(w.made[n])
	}
}

// recordReturn records that a handler ends, with how.
func (h *handling) recordReturn(x *call, how string) {
	for n, p := range x.runs {
		if p == h.p {
			x.runs = append(x.runs[:n], x.runs[n+1:]...)
			break
		}
	}
	x.Returns(how)
}

// handleCall handles a call. It always calls done when it ends.
func (h *handling) handleCall(ctx context.Context, q []byte, done func()) ([]byte, error) {
	x := h.recordBegin(ctx, q)
	if x == nil {
		done()
		return nil, errors.New("nonsense")
	}
	var err error
	switch o := x.op; o.does {
	case doSleep:
		h.p.Sleep(o.sleep)
	case doForward:
		err = h.forwardCall(ctx, o)
	default:
		err = h.misbehave(ctx, x, done)
	}
	done()
	h.recordReturn(x, errorForm(err))
	if err != nil {
		return nil, err
	}
	return x.Reply(), nil
}

// errorForm returns the form in which a handler's error reaches its caller.
func errorForm(err error) string {
	e, ok := errors.AsType[*rpc.Error](err)
	switch {
	case err == nil:
		return ""
	case ok:
		return codeName(e.Code)
	case errors.Is(err, errOfService):
		return codeName(rpc.FirstCode + 7471)
	case errors.Is(err, context.DeadlineExceeded):
		return codeName(rpc.CodeDeadline)
	case errors.Is(err, context.Canceled):
		return codeName(rpc.CodeCanceled)
	}
	return codeName(rpc.CodeUnknown)
}

// misbehave performs the actions of handlers that neither answer nor fail in the usual way.
func (h *handling) misbehave(ctx context.Context, x *call, done func()) error {
	w := h.i.s.w
	switch x.op.does {
	case doWait:
		<-ctx.Done()
		h.p.Sleep(0)
		w.excuseCall(x)
		x.Noticed(w.World.Now())
		return ctx.Err()
	case doError:
		return fmt.Errorf("call %d is not liked", x.Number())
	case doCode:
		return fmt.Errorf("call %d: %w", x.Number(), errOfService)
	case doPanic:
		done()
		h.recordReturn(x, codeName(rpc.CodeInternal))
		panic("the handler was asked to")
	case doExit:
		done()
		h.recordReturn(x, codeName(rpc.CodeInternal))
		runtime.Goexit()
	}
	return nil
}

// forwardCall calls the next server, within the caller's context.
func (h *handling) forwardCall(ctx context.Context, o *callOp) error {
	w := h.i.s.w
	c := h.next.c
	if c == nil {
		return nil
	}
	further := &callOp{via: viaCall, request: o.request, reply: o.reply, does: doSleep, sleep: o.at % (5 * time.Millisecond), cancel: 1}
	x := w.recordCall(h.p, h.i.s.n, h.next, further, ctx)
	r, err := makeCall(ctx, c, x)
	w.recordOutcome(x, r, err)
	return err
}

// handleStream handles a stream. It always calls done when it ends.
func (h *handling) handleStream(ctx context.Context, q []byte, out *rpc.Sender[item], done func()) error {
	x := h.recordBegin(ctx, q)
	if x == nil {
		done()
		return errors.New("nonsense")
	}
	o := x.op
	err := func() error {
		for n := range o.items {
			if o.sleep > 0 {
				h.p.Sleep(o.sleep)
			}
			if o.does == doBehind && n == o.items/2 {
				h.sendBehind(x, out)
				return nil
			}
			if err := h.send(x, out); err != nil {
				return err
			}
		}
		end := func() {
			done()
			x.items.Finished(codeName(rpc.CodeInternal))
		}
		return h.misbehave(ctx, x, end)
	}()
	done()
	x.items.Finished(errorForm(err))
	h.recordReturn(x, errorForm(err))
	return err
}

// sendBehind sends from another goroutine while the handler returns, perhaps in the middle of an
// item.
func (h *handling) sendBehind(x *call, out *rpc.Sender[item]) {
	h.me.startGoroutine(func() {
		for range x.op.items {
			if out.Send(&item{b: []byte("behind"), p: h.p}) != nil {
				return
			}
		}
	})
	h.p.Sleep(x.op.sleep)
}
