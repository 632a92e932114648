package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// leavings are the ways in which code leaves its caller for good.
var leavings = map[string]func(){
	"panic":  func() { panic("for the test") },
	"Goexit": runtime.Goexit,
}

// wild is a message whose encoding calls leave, which may not return. Its decoding does not return
// if it reads the name of a way to leave.
type wild struct {
	text  string
	leave func()
}

func (w *wild) AppendBinary(b []byte) ([]byte, error) {
	if w.leave != nil {
		w.leave()
	}
	return append(b, w.text...), nil
}

func (w *wild) UnmarshalBinary(b []byte) error {
	w.text = string(b)
	if leave := leavings[w.text]; leave != nil {
		leave()
	}
	return nil
}

// wildError is an error whose Error method does not return.
type wildError struct{ leave func() }

func (e *wildError) Error() string { e.leave(); return "" }

var (
	wildBoth   = NewMethod[wild, wild]("test.Wild")
	wildReply  = NewMethod[Bytes, wild]("test.Echo")
	wildItems  = NewStream[Bytes, wild]("test.WildItems")
	wildStream = NewStream[wild, wild]("test.WildItems")
	plainItems = NewStream[Bytes, Bytes]("test.WildItems")
	plainWild  = NewMethod[Bytes, Bytes]("test.Wild")
)

// mayLeave is a world in which it is no failure that user code panics.
var mayLeave = actortest.Config{OnPanic: func(eventloop.Panic) {}, Runtime: rdma.Config{Logger: slog.New(slog.DiscardHandler)}}

// settled waits until both sides know that they are connected.
func (r *rig) settled() {
	r.t.Helper()
	if _, err := CallRaw(r.within(time.Minute), r.c, echo, nil, nil); err != nil {
		r.t.Fatal(err)
	}
}

// All user code that a server calls may panic, or end its goroutine unless that is a loop's. The
// call is answered, its place is free again, and the other calls of the message and of the server
// go on.
func TestServersCodeLeaves(t *testing.T) {
	stages := map[string]HandlerConfig{
		"handler": {}, "handler OnLoop": {OnLoop: true}, "raw": {}, "raw OnLoop": {OnLoop: true},
		"decode": {}, "decode OnLoop": {OnLoop: true}, "encode": {}, "encode OnLoop": {OnLoop: true},
		"error": {}, "error OnLoop": {OnLoop: true},
		"interceptor": {}, "interceptor OnLoop": {OnLoop: true}, "after next": {}, "after next OnLoop": {OnLoop: true},
		"stream": {}, "item": {}, "stream decode": {}, "stream error": {},
	}
	for stage, cfg := range stages {
		for how, leave := range leavings {
			if cfg.OnLoop && how == "Goexit" {
				continue // it ends the loop
			}
			t.Run(stage+"/"+how, func(t *testing.T) {
				at := func(now string) {
					if strings.TrimSuffix(stage, " OnLoop") == now {
						leave()
					}
				}
				within := func(ctx context.Context, call *Info, next func(context.Context) error) error {
					if call.Method == "test.Echo" {
						return next(ctx)
					}
					at("interceptor")
					err := next(ctx)
					at("after next")
					return err
				}
				refuse := func() error {
					if s := strings.TrimSuffix(stage, " OnLoop"); s == "error" || s == "stream error" {
						return &wildError{leave}
					}
					return nil
				}
				const at1, more = 2, 20
				inWorld(t, rigConfig{
					server: ServerConfig{MaxCallsInAll: at1, Interceptors: []Interceptor{within}}, world: mayLeave,
				}, func(s *Server) {
					handleEcho(s)
					if strings.HasPrefix(stage, "raw") {
						HandleRaw(s, NewRawMethod("test.Wild"), func(context.Context, []byte, []byte) ([]byte, error) {
							at("raw")
							return nil, nil
						}, cfg)
					} else {
						Handle(s, wildBoth, func(context.Context, *wild) (*wild, error) {
							at("handler")
							w := &wild{}
							if strings.HasPrefix(stage, "encode") {
								w.leave = leave
							}
							return w, refuse()
						}, cfg)
					}
					HandleStream(s, wildStream, func(_ context.Context, _ *wild, out *Sender[wild]) error {
						at("stream")
						w := &wild{text: "an item"}
						if stage == "item" {
							w.leave = leave
						}
						return errors.Join(out.Send(w), refuse())
					})
				}, func(r *rig) {
					q := Bytes("a request")
					if strings.Contains(stage, "decode") {
						q = Bytes(how)
					}
					r.settled()
					for range more {
						var err error
						if stage == "item" || strings.HasPrefix(stage, "stream") {
							in, e := Open(r.within(time.Minute), r.c, plainItems, &q)
							if e != nil {
								r.t.Fatal(e)
							}
							for e == nil {
								_, e = in.Receive()
							}
							err = e
						} else {
							_, err = Call(r.within(time.Minute), r.c, plainWild, &q)
						}
						want(r.t, err, ErrInternal, FateAnswered)
						if err != nil && strings.Contains(err.Error(), "for the test") {
							r.t.Errorf("the client gets %v", err)
						}
						got, err := CallRaw(r.within(time.Minute), r.c, echo, []byte("next"), nil)
						if err != nil || string(got) != "next" {
							r.t.Fatalf("the next call: %q, %v", got, err)
						}
					}
					r.Wait()
					if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
						r.t.Errorf("%d and %d calls are still in flight", n, m)
					}
					if n := len(r.s.connections()); n != 1 {
						r.t.Errorf("the server has %d connections, want the one that there was", n)
					}
					r.good()
					if err := r.s.Shutdown(r.within(time.Minute)); err != nil {
						r.t.Errorf("Shutdown: %v", err)
					}
				})
			})
		}
	}
}

// If a handler on the loop panics, the other calls of its message are answered, those before it and
// those behind it.
func TestCallsBesideOneThatPanics(t *testing.T) {
	inWorld(t, rigConfig{world: mayLeave}, func(s *Server) {
		handleEcho(s)
		HandleRaw(s, fail, func(context.Context, []byte, []byte) ([]byte, error) {
			panic("the handler says no")
		}, HandlerConfig{OnLoop: true})
	}, func(r *rig) {
		p := r.rawClient()
		p.say(declareEcho, frame(wire.Header{Type: wire.FrameCall, Call: 30}, ""))
		p.answer(r.t)
		frames := [][]byte{frame(wire.Header{Type: wire.FrameDeclare, Number: 1}, "test.Fail")}
		const calls = 20
		for i := range calls {
			frames = append(frames, frame(wire.Header{Type: wire.FrameCall, Number: uint16(i % 2), Call: wire.CallID(i)}, fmt.Sprint(i)))
		}
		p.say(frames...)
		p.say(frame(wire.Header{Type: wire.FrameCall, Call: calls}, "last"))
		answers := make(map[wire.CallID]wire.Header)
		for len(answers) <= calls {
			for data := actortest.Next[*rdma.Received](p.Probe).Data; len(data) > 0; {
				h, body, rest, err := wire.ParseFrame(data)
				if err != nil {
					r.t.Fatal(err)
				}
				if i := h.Call.Slot(); i%2 == 0 && i < calls && string(body) != fmt.Sprint(i) {
					r.t.Errorf("call %d was answered with %q", i, body)
				}
				answers[h.Call], data = h, rest
			}
		}
		for id, h := range answers {
			switch left := id%2 == 1; {
			case left && (h.Type != wire.FrameError || Code(h.Number) != CodeInternal):
				r.t.Errorf("call %d was answered with %+v", id, h)
			case !left && h.Type != wire.FrameReply:
				r.t.Errorf("call %d was answered with %+v", id, h)
			}
		}
		r.good()
	})
}

// apart runs fn on a goroutine that fn may leave, and reports whether it came to its end.
func apart(fn func()) (whole bool, panicked any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		fn()
		whole = true
	}()
	<-done
	return whole, panicked
}

// Codecs at the client: a panic is the error of its call, or its caller's goroutine ends. Neither
// has an effect on anybody else.
func TestCodecsLeaveTheClient(t *testing.T) {
	for how, leave := range leavings {
		t.Run(how, func(t *testing.T) {
			inWorld(t, rigConfig{world: mayLeave}, func(s *Server) {
				handleEcho(s)
				HandleStream(s, plainItems, func(ctx context.Context, q *Bytes, out *Sender[Bytes]) error {
					for ctx.Err() == nil {
						if err := out.Send(q); err != nil {
							return err
						}
					}
					return nil
				})
			}, func(r *rig) {
				says := Bytes(how)
				for name, fn := range map[string]func() error{
					"Call, encoding": func() error {
						_, err := Call(r.t.Context(), r.c, wildBoth, &wild{leave: leave})
						return err
					},
					"Call, decoding": func() error {
						_, err := Call(r.t.Context(), r.c, wildReply, &says)
						return err
					},
					"Open, encoding": func() error {
						_, err := Open(r.t.Context(), r.c, wildStream, &wild{leave: leave})
						return err
					},
					"Recv, decoding": func() error {
						in, err := Open(r.t.Context(), r.c, wildItems, &says)
						if err != nil {
							return err
						}
						_, err = in.Receive()
						return err
					},
					"NewError": func() error {
						_, err := NewError(errTaken, "", &wild{leave: leave})
						return errors.Join(err, ErrBadMessage) // it is no call's
					},
					"DetailsOf": func() error {
						if _, ok := DetailsOf[wild](&Error{Details: says}); ok {
							return nil
						}
						return ErrBadMessage
					},
				} {
					var err error
					whole, v := apart(func() { err = fn() })
					switch {
					case v != nil:
						r.t.Errorf("%s: the caller is panicked with %v", name, v)
					case whole != (how == "panic"):
						r.t.Errorf("%s: it returned: %v", name, whole)
					case whole && !errors.Is(err, ErrBadMessage):
						r.t.Errorf("%s: %v, want ErrBadMessage", name, err)
					}
				}
				r.Wait()
				if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
					r.t.Errorf("%d and %d calls are still in flight", n, m)
				}
				r.good()
			})
		})
	}
}

// Every call that Go makes is answered, and the client goes on, whatever the decoding of answers
// on its loop does.
func TestGoWhoseCodeLeaves(t *testing.T) {
	for how, leave := range leavings {
		for name, cfg := range map[string]ClientConfig{
			"loop": {},
			"interceptor": {Interceptors: []Interceptor{func(ctx context.Context, call *Info, next func(context.Context) error) error {
				if call.Method == "test.Nowhere" {
					leave()
				}
				return next(ctx)
			}}},
		} {
			if name == "loop" && how == "Goexit" {
				continue // it ends the loop
			}
			t.Run(name+"/"+how, func(t *testing.T) {
				inWorld(t, rigConfig{client: cfg, world: mayLeave}, handleEcho, func(r *rig) {
					const calls = 40
					type reply struct {
						bad bool
						err error
					}
					got := make(chan reply, 10*calls)
					pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
						switch m := ctx.Message().(type) {
						case string:
							for i := range calls { // in one message
								q := Bytes("fine")
								if i%2 == 1 {
									q = Bytes(how)
								}
								if name == "loop" {
									Go(ctx, r.c, wildReply, &q)
								} else if i%2 == 1 {
									Go(ctx, r.c, lost, &q)
								} else {
									Go(ctx, r.c, wildReply, &q)
								}
							}
						case *wild:
							Go(ctx, r.c, wildBoth, m)
						case *Reply[wild]:
							got <- reply{m.Value == nil, m.Err}
						case *Reply[Bytes]:
							got <- reply{true, m.Err}
						}
					}, r.Runtime().OnLoop()))
					defer r.System().Root.Stop(pid)
					r.System().Root.Send(pid, "go")
					bad := 0
					for range calls {
						a := <-got
						if a.bad != (a.err != nil) {
							r.t.Errorf("%+v", a)
						}
						if a.bad {
							bad++
							if name == "loop" && !errors.Is(a.err, ErrBadMessage) {
								r.t.Errorf("a call gets %v, want %v", a.err, ErrBadMessage)
							}
						}
					}
					if bad != calls/2 {
						r.t.Errorf("%d of %d calls have failed, want half", bad, calls)
					}
					r.System().Root.Send(pid, &wild{leave: leave})
					var pe *PanicError
					if a := <-got; !errors.As(a.err, &pe) && !errors.Is(a.err, ErrBadMessage) {
						r.t.Errorf("a request that is not encoded gets %v", a.err)
					}
					r.Wait()
					here := r.c.Inspect()
					if i := methodOf(r.t, here, "test.Echo"); name == "loop" && (i.OK != calls || i.Undecoded != calls/2) {
						r.t.Errorf("%d calls are counted as answered, %d of them undecoded", i.OK, i.Undecoded)
					}
					if how != "Goexit" { // which has its reply, but no count
						if i := methodOf(r.t, here, "test.Wild"); i.Refused.Message != 1 || i.Started != 0 {
							r.t.Errorf("a request that is not encoded counts as %+v", i)
						}
					}
					if n := len(got); n != 0 {
						r.t.Errorf("%d answers too many", n)
					}
					if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
						r.t.Errorf("%d and %d calls are still in flight", n, m)
					}
					if n := len(r.s.connections()); n != 1 {
						r.t.Errorf("the server has %d connections, want the one that there was", n)
					}
					if _, err := CallRaw(r.within(time.Minute), r.c, echo, nil, nil); err != nil {
						r.t.Error(err)
					}
				})
			})
		}
	}
}

// A stream is closed if an interceptor has opened it and then does not return.
func TestInterceptorLeavesAStream(t *testing.T) {
	for how, leave := range leavings {
		t.Run(how, func(t *testing.T) {
			after := func(ctx context.Context, _ *Info, next func(context.Context) error) error {
				err := next(ctx)
				leave()
				return err
			}
			inWorld(t, rigConfig{client: ClientConfig{Interceptors: []Interceptor{after}}}, func(s *Server) { handleCount(s) }, func(r *rig) {
				whole, v := apart(func() { _, _ = Open(context.Background(), r.c, count, wrapperspb.Int64(-1)) })
				if whole || (v != nil) != (how == "panic") {
					r.t.Errorf("it returned: %v, %v", whole, v)
				}
				r.Wait()
				if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
					r.t.Errorf("%d and %d calls are still in flight", n, m)
				}
			})
		})
	}
}

// TestLoopEndedBehindAdmittedCalls: a handler that ends its loop stands behind a worker's call in
// the same message. That call was admitted, so it is executed, and Shutdown does not wait for it.
func TestLoopEndedBehindAdmittedCalls(t *testing.T) {
	inWorld(t, rigConfig{world: mayLeave}, func(s *Server) {
		handleEcho(s)
		HandleRaw(s, fail, func(context.Context, []byte, []byte) ([]byte, error) {
			runtime.Goexit()
			return nil, nil
		}, HandlerConfig{OnLoop: true})
	}, func(r *rig) {
		p := r.rawClient()
		p.say(declareEcho, frame(wire.Header{Type: wire.FrameCall, Call: 30}, ""))
		p.answer(r.t)
		p.say(frame(wire.Header{Type: wire.FrameDeclare, Number: 1}, "test.Fail"),
			frame(wire.Header{Type: wire.FrameCall, Number: 0, Call: wire.CallID(0)}, "first"),
			frame(wire.Header{Type: wire.FrameCall, Number: 1, Call: wire.CallID(1)}, "leaves"))
		r.Wait()
		if n := r.s.InFlight(); n != 0 {
			t.Errorf("%d calls are in flight", n)
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
		defer cancel()
		if err := r.s.Shutdown(ctx); err != nil {
			t.Error("Shutdown:", err)
		}
	})
}
