package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/internal/relisten"
	"github.com/rdmactor/rdmactor/rpc/internal/share"
)

// Server answers calls. Its handlers are registered first (Handle, HandleRaw, HandleStream), then
// it listens. Its methods are for any goroutine but a loop's.
type Server struct {
	rt      *rdma.Runtime
	sys     *actor.ActorSystem
	log     *slog.Logger
	cfg     ServerConfig
	workers workers
	shares  *share.Account
	ledger  *ledger

	inFlight atomic.Int64 // admitted or in the queue, and not answered
	draining atomic.Bool
	ending   chan struct{} // closed when draining is set
	idle     chan struct{} // closed when draining and nothing is in flight
	idleOnce sync.Once

	mu        sync.Mutex
	handlers  map[string]*handler
	listeners []*relisten.Listener
	conns     map[*serverConn]struct{}
	gone      chan struct{} // closed when draining and there is no connection left
	goneOnce  sync.Once
}

// NewServer makes a server on a runtime. It has to be closed before the runtime is shut down.
func NewServer(rt *rdma.Runtime, cfg ...ServerConfig) *Server {
	s := &Server{
		rt: rt, sys: rt.System(), log: rt.Logger(), cfg: optional.Value(cfg).withDefaults(), ending: make(chan struct{}), idle: make(chan struct{}),
		gone:     make(chan struct{}),
		ledger:   newLedger(),
		handlers: make(map[string]*handler), conns: make(map[*serverConn]struct{}),
	}
	s.workers.sched = rt.Scheduler()
	calls, streams, of := s.cfg.MaxCallsInAll, s.cfg.MaxStreamsInAll, streamsOf(s.cfg.MaxStreams, s.cfg.MaxCalls)
	s.workers.max = calls + 2*streams
	s.shares = share.New(
		share.Amounts{share.Calls: calls, share.Waiting: waitingPerPlace * calls, share.Streams: streams, share.Watches: streams, share.Memory: s.cfg.Memory},
		share.Amounts{share.Calls: s.cfg.MaxCalls, share.Waiting: s.cfg.MaxCalls, share.Streams: of, share.Watches: of, share.Memory: s.cfg.Memory},
		s.cfg.MaxWait,
	)
	return s
}

// Listen starts serving at addr ("host:port", port 0 is any) and returns the actual address. A
// server may listen at several addresses, until Shutdown or Close. After a reset of its device a
// listener listens again, as Serve does. If it fails for five minutes, it ends, which is only
// logged. Serve returns the reason.
func (s *Server) Listen(ctx context.Context, addr string) (rdma.Addr, error) {
	at, _, err := s.listenOn(ctx, addr)
	return at, err
}

// listenOn implements Listen. When the listener ends, over delivers the reason.
func (s *Server) listenOn(ctx context.Context, addr string) (at rdma.Addr, over <-chan error, err error) {
	ended := make(chan error, 1)
	cfg := idConfig(s.cfg.MaxMessage, s.cfg.Credits)
	cfg.Handler = actor.PropsFromProducer(func() actor.Actor { return newServerConn(s) }, resuming)
	l, err := relisten.Listen(ctx, s.rt, relisten.Config{
		Name: "rpc", Addr: addr, ID: cfg, GiveUp: relisten.GiveUp, Ended: func(err error) { ended <- err },
	})
	if err != nil {
		return rdma.Addr{}, nil, fmt.Errorf("rpc: listen at %s: %w", addr, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		l.Stop()
		return rdma.Addr{}, nil, &Error{Code: CodeClosed, Fate: FateNotSent}
	}
	s.listeners = append(s.listeners, l)
	return l.Addr(), ended, nil
}

// Serve listens at addr and serves until one of three events. If ctx ends, Serve closes the server;
// for a polite end call Shutdown first. Or the server is drained or closed. Or the listener ends,
// because the runtime was shut down (rdma.ErrShutdown), or because its device was removed, or its
// socket taken, and Serve could not listen again. It retries for five minutes, so a reset of the
// device does not end it. The error then wraps the cause, such as *rdma.RemovedError, and the
// failure of the last attempt. The server keeps its existing connections.
func (s *Server) Serve(ctx context.Context, addr string) error {
	at, over, err := s.listenOn(ctx, addr) // may be on a loop
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.ending:
	case err = <-over:
	}
	s.rt.Scheduler().Resume()
	if err == nil && len(over) > 0 {
		err = <-over
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("rpc: serve at %v: %w", at, err)
	}
	if s.rt.Scheduler().Await(ctx.Done(), s.idle) {
		s.Close()
		return context.Cause(ctx)
	}
	return &Error{Code: CodeClosed, Fate: FateNotSent}
}

// InFlight returns the number of calls that are being handled, or wait for a place (MaxWait).
func (s *Server) InFlight() int { return int(s.inFlight.Load()) }

// Draining returns a channel that is closed when Shutdown or Close begins. The handler of an
// endless stream should then return ErrDraining, so that its caller can continue at another server.
func (s *Server) Draining() <-chan struct{} { return s.ending }

// stopCalls stops taking calls, refuses those that wait for a place, and sends m to the existing
// connections. There will be no others.
func (s *Server) stopCalls(m any) {
	defer s.expire()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining.Swap(true) {
		close(s.ending)
	}
	s.emptiedLocked()
	byName := func(a, b *serverConn) int { return strings.Compare(a.out.pid.Id, b.out.pid.Id) }
	for _, c := range slices.SortedFunc(maps.Keys(s.conns), byName) {
		s.sys.Root.Send(c.out.pid, m)
	}
}

// emptiedLocked closes gone if there is no connection, and none can come.
func (s *Server) emptiedLocked() {
	if len(s.conns) == 0 && s.draining.Load() {
		s.goneOnce.Do(func() { close(s.gone) })
	}
}

// Shutdown ends the server in order. It stops listening, notifies the clients, and refuses new
// calls with ErrDraining, so that they can be made elsewhere. It waits until the calls in flight
// were answered and their answers were taken, and then ends the connections. If ctx ends before
// that, the rest is cut off as by Close, for which Shutdown waits a second at most. Its error is
// ctx's cause then. A program shuts its servers down before the Runtime that they use:
//
//	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
//	defer stop()
//	err := errors.Join(server.Shutdown(ctx), rt.Shutdown(ctx))
func (s *Server) Shutdown(ctx context.Context) error {
	if err := eventloop.MayWait(); err != nil {
		return fmt.Errorf("rpc: shutdown: %w", err)
	}
	s.stopCalls(&drain{})
	s.closeListeners(ctx)
	s.checkIdle()
	if !s.rt.Scheduler().Await(s.idle, ctx.Done()) {
		return s.closeNow(ctx)
	}
	s.stopCalls(&finish{})
	if !s.rt.Scheduler().Await(s.gone, ctx.Done()) {
		return s.closeNow(ctx)
	}
	s.Close()
	return nil
}

// abortFor is the time that a Shutdown whose context has ended waits for the connections that it
// cuts off.
const abortFor = time.Second

// closeNow closes the server for a Shutdown that has no more time. It does not wait long for a
// blocked loop.
func (s *Server) closeNow(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortFor)
	defer cancel()
	s.closeWithin(last)
	return context.Cause(ctx)
}

// Close cuts everything off: connections end, the contexts of handlers are cancelled. It waits for
// the end of the connections, and so for a loop that is blocked. A Shutdown whose context ends does
// not. It does not wait for handlers that ignore their context. On a loop it does not wait at all:
// the rest happens on a goroutine.
func (s *Server) Close() {
	if eventloop.MayWait() != nil {
		s.rt.Scheduler().Go(s.Close)
		return
	}
	s.closeWithin(context.Background())
}

// closeWithin closes the server, and waits no longer than ctx lets it.
func (s *Server) closeWithin(ctx context.Context) {
	s.stopCalls(&abort{})
	s.closeListeners(ctx)
	s.rt.Scheduler().Await(s.gone, ctx.Done())
	s.workers.close()
	s.idleOnce.Do(func() { close(s.idle) })
}

func (s *Server) closeListeners(ctx context.Context) {
	s.mu.Lock()
	listeners := s.listeners
	s.listeners = nil
	s.mu.Unlock()
	for _, l := range listeners {
		l.Close(ctx)
	}
}

// addConn registers a connection. Not ok: the server has ended.
func (s *Server) addConn(c *serverConn) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) removeConn(c *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.emptiedLocked()
}

// admitCall gives a call its place, or returns why it has none.
func (s *Server) admitCall(c *serverConn, h *handler) (refused Code) {
	s.inFlight.Add(1)
	switch {
	case s.draining.Load():
		refused = CodeDraining
	case !h.inline && !c.share.Take(h.placeKind(), 1):
		refused = CodeOverloaded
	default:
		return 0
	}
	s.callAnswered()
	return refused
}

// callAnswered ends the call that admitCall or takeQueuePlace began.
func (s *Server) callAnswered() {
	if s.inFlight.Add(-1) == 0 && s.draining.Load() {
		s.checkIdle()
	}
}

func (s *Server) checkIdle() {
	if s.inFlight.Load() == 0 {
		s.idleOnce.Do(func() { close(s.idle) })
	}
}

// handlerOf returns a method's handler; nil: it has none.
func (s *Server) handlerOf(name string) *handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handlers[name]
}

// reportPanic logs and publishes a handler's panic. The value is the user's, and its String or
// Error method may not return. So it is called here, and not when the log line is written.
func (s *Server) reportPanic(method string, why *PanicError) {
	tryCall(func() {
		s.log.Error("rpc: a handler has panicked", "method", method, "panic", fmt.Sprint(why.Value), "stack", string(why.Stack))
	}, func(*PanicError) {})
	publishEvent(s.sys, &rdma.Panicked{Kind: "rpc handler", Name: method, Value: why.Value, Stack: why.Stack})
}
