package rpc

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// connected returns since when the only server of a client has its connection.
func (r *rig) connected() time.Time { return r.c.Servers()[0].Connected }

// A client replaces a connection that has reached its age, and no call fails meanwhile.
func TestMaxConnectionAge(t *testing.T) {
	const age = time.Minute
	inWorld(t, rigConfig{server: ServerConfig{MaxConnectionAge: age}}, handleEcho, func(r *rig) {
		since := r.connected()
		var lasted []time.Duration
		for end := r.Elapsed() + 30*time.Minute; r.Elapsed() < end; r.Advance(200 * time.Millisecond) {
			if _, err := CallRaw(r.t.Context(), r.c, echo, []byte("x"), nil); err != nil {
				r.t.Fatalf("after %v: %v", r.Elapsed(), err)
			}
			if at := r.connected(); !at.Equal(since) {
				lasted = append(lasted, at.Sub(since))
				since = at
			}
		}
		if len(lasted) < 25 {
			r.t.Fatalf("%d connections in half an hour", len(lasted))
		}
		least, most := lasted[0], lasted[0]
		for _, d := range lasted {
			least, most = min(least, d), max(most, d)
		}
		if least < age*9/10 || most > age*11/10+time.Second || most-least < age/10 {
			r.t.Errorf("connections lasted between %v and %v", least, most)
		}
		if n := len(r.s.connections()); n != 1 {
			r.t.Errorf("%d connections are left", n)
		}
	})
}

// A stream keeps its old connection until it ends, and no longer than the grace.
func TestMaxConnectionAgeGrace(t *testing.T) {
	cfg := ServerConfig{MaxConnectionAge: time.Minute, MaxConnectionAgeGrace: 10 * time.Minute}
	inWorld(t, rigConfig{server: cfg}, func(s *Server) { handleIdle(s); handleEcho(s) }, func(r *rig) {
		begin := r.Elapsed()
		in, err := Open(r.t.Context(), r.c, idle, wrapperspb.Int64(1))
		if err != nil {
			r.t.Fatal(err)
		}
		for {
			if _, err = in.Receive(); err != nil {
				break
			}
		}
		if d := r.Elapsed() - begin; !errors.Is(err, ErrUnavailable) || d < 10*time.Minute+54*time.Second || d > 11*time.Minute+7*time.Second {
			r.t.Errorf("the stream ended after %v: %v", d, err)
		}
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
	})
}

// If the client cannot connect again, it goes on with the connection that it has, and is asked
// again.
func TestMaxConnectionAgeWithoutAnother(t *testing.T) {
	inWorld(t, rigConfig{server: ServerConfig{MaxConnectionAge: time.Minute}}, handleEcho, func(r *rig) {
		since := r.connected()
		r.deafen()
		r.Advance(2 * time.Minute)
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil || !r.connected().Equal(since) {
			r.t.Errorf("%v, connected since %v, before %v", err, r.connected(), since)
		}
		r.listen()
		r.Advance(2 * time.Minute)
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil || r.connected().Equal(since) {
			r.t.Errorf("%v, connected since %v", err, r.connected())
		}
	})
}

// deafen makes the server stop listening, so that no client can connect.
func (r *rig) deafen() {
	r.t.Helper()
	r.s.mu.Lock()
	listeners := r.s.listeners
	r.s.listeners = nil
	r.s.mu.Unlock()
	for _, l := range listeners {
		l.Close(r.t.Context())
	}
}

// listen makes it listen again.
func (r *rig) listen() {
	r.t.Helper()
	if _, err := r.s.Listen(r.t.Context(), r.addr); err != nil {
		r.t.Fatal(err)
	}
}

// During the grace a client that could not connect is asked again, and no call fails at its end. If
// it still cannot connect, calls in the last part of the grace are not sent.
func TestMaxConnectionAgeGraceWithoutAnother(t *testing.T) {
	cfg := ServerConfig{MaxConnectionAge: time.Minute, MaxConnectionAgeGrace: 16 * time.Minute}
	inWorld(t, rigConfig{server: cfg}, handleEcho, func(r *rig) {
		call := func() error {
			_, err := CallRaw(r.t.Context(), r.c, echo, nil, nil)
			return err
		}
		since := r.connected()
		r.deafen()
		r.Advance(5 * time.Minute)
		r.listen()
		r.Advance(2 * time.Minute)
		if err := call(); err != nil || r.connected().Equal(since) {
			r.t.Errorf("%v, connected since %v, before %v", err, r.connected(), since)
		}
		r.deafen()
		for end := r.Elapsed() + 20*time.Minute; r.Elapsed() < end; r.Advance(time.Second) {
			if e, ok := errors.AsType[*Error](call()); ok {
				if e.Fate != FateNotSent {
					r.t.Error(e)
				}
				return
			}
		}
		r.t.Error("the connection was not cut off")
	})
}

// MaxConnectionAge has no upper bound, whichever way it is varied.
func TestMaxConnectionAgeOfCenturies(t *testing.T) {
	inWorld(t, rigConfig{server: ServerConfig{MaxConnectionAge: math.MaxInt64}}, handleEcho, func(r *rig) {
		for range 16 {
			c := r.dial()
			since := c.Servers()[0].Connected
			if r.Advance(time.Minute); !c.Servers()[0].Connected.Equal(since) {
				r.t.Error("the connection was replaced")
			}
			c.Close()
		}
	})
}

// A server that asks for another connection all the time gets one per pause.
func TestServerThatAsksForConnections(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		far, asked, conns := w.Host("mem1", there), bytes.Repeat(frame(wire.Header{Type: wire.FrameDrain, Flags: wire.FlagOld}, ""), 100), 0
		server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Serve{Addr: there + ":7471"})
			case *rdma.ConnectRequest:
				ctx.Respond(&rdma.Accept{PrivateData: wire.Hello{Version: 1, Latest: 2, Calls: 2}.Bytes()})
			case *rdma.Established:
				conns++
				for range 10 {
					ctx.Respond(rdma.NewSend(asked))
				}
			}
		}, far.OnLoop()))
		w.Wait()
		c, err := Dial(w.T().Context(), w.Runtime(), there+":7471")
		if err != nil {
			w.T().Fatal(err)
		}
		// Pauses grow to 5 s, half of them on average.
		if w.Advance(time.Minute); conns < 5 || conns > 60 {
			w.T().Errorf("%d connections in a minute", conns)
		}
		c.Close()
		w.System().Root.Stop(server)
	})
}

// No call fails, without retries, while a client's only connection is replaced again and again.
func TestMaxConnectionAgeUnderLoad(t *testing.T) {
	rt, err := rdma.Open(actor.NewActorSystem(), rdma.Config{Device: iwarp.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Shutdown(context.Background()) }()
	s := NewServer(rt, ServerConfig{MaxConnectionAge: 10 * time.Millisecond})
	handleEcho(s)
	defer s.Close()
	at, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(rt, at.String())
	defer c.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	replaced := 0 // of the first caller
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			defer stop()
			var since time.Time
			for ctx.Err() == nil {
				if _, err := CallRaw(t.Context(), c, echo, []byte("x"), nil); err != nil {
					t.Error(err)
					return
				}
				if i > 0 {
					continue
				}
				if at := c.Servers()[0].Connected; !at.Equal(since) {
					since = at
					if replaced++; replaced == 30 {
						return
					}
				}
			}
		})
	}
	callers.Wait()
	if replaced < 30 {
		t.Errorf("replaced %d times", replaced)
	}
}

// hooked is a context that calls hook when a call takes its metadata: it has chosen a connection
// then, and not used it yet.
type hooked struct {
	context.Context
	hook func()
}

func (h *hooked) Value(key any) any {
	if hook := h.hook; hook != nil {
		h.hook = nil
		hook()
	}
	return h.Context.Value(key)
}

// A call that has chosen a connection when that is replaced takes the next one.
func TestCallMeetsMaxConnectionAge(t *testing.T) {
	inWorld(t, rigConfig{server: ServerConfig{MaxConnectionAge: time.Minute}}, handleEcho, func(r *rig) {
		since := r.connected()
		replace := func() {
			if r.Advance(time.Minute + 10*time.Second); r.connected().Equal(since) {
				r.t.Error("the connection was not replaced")
			}
		}
		if _, err := CallRaw(&hooked{r.t.Context(), replace}, r.c, echo, []byte("x"), nil); err != nil {
			r.t.Error(err)
		}
	})
}
