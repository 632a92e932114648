package rpc

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// miser is a server that grants one credit, and renews it only on the test's command. It answers
// every request, and records it.
type miser struct {
	mu      sync.Mutex
	giving  bool
	kept    *rdma.Received
	conn    *actor.PID
	calls   []wire.Header
	cancels int
	bytes   int // of all messages
}

func (s *miser) receive(ctx actor.Context, far *rdma.Runtime) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{MaxMessage: 8 << 20, Credits: 1}), &rdma.Serve{Addr: there + ":7471"})
	case *rdma.ConnectRequest:
		s.conn = ctx.Sender()
		ctx.Respond(&rdma.Accept{PrivateData: wire.Hello{Version: wire.HelloVersion, Calls: 1000}.Bytes()})
	case *rdma.Received:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bytes += len(m.Data)
		for b := m.Data; len(b) > 0; {
			h, _, rest, err := wire.ParseFrame(b)
			if err != nil {
				panic(err)
			}
			switch h.Type {
			case wire.FrameCall:
				s.calls = append(s.calls, h)
				ctx.Respond(rdma.NewSend(frame(wire.Header{Type: wire.FrameReply, Call: h.Call}, "")))
			case wire.FrameCancel:
				s.cancels++
			}
			b = rest
		}
		if !s.giving {
			s.kept = m.Retain()
		}
	}
}

// give makes it return credits from now on.
func (s *miser) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giving = true
	s.kept.Release()
}

// inMisersWorld runs test with a client of a miser that has its only credit.
func inMisersWorld(t *testing.T, test func(w *actortest.World, s *miser, c *Client)) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		s, far := &miser{}, w.Host("mem1", there)
		props := actor.PropsFromFunc(func(ctx actor.Context) { s.receive(ctx, far) }, far.OnLoop())
		server := w.System().Root.Spawn(props)
		w.Wait()
		c, err := Dial(w.T().Context(), w.Runtime(), there+":7471")
		if err != nil {
			w.T().Fatal(err)
		}
		if _, err := CallRaw(w.T().Context(), c, echo, nil, nil); err != nil {
			w.T().Fatal(err)
		}
		test(w, s, c)
		c.Close()
		w.System().Root.Stop(server)
	})
}

// startCalls makes n calls of q with a context, each on a goroutine and one after the other, and
// gives their errors.
func startCalls(w *actortest.World, ctx context.Context, c *Client, n int, q []byte) <-chan error {
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := CallRaw(ctx, c, echo, q, nil)
			errs <- err
		}()
		w.Wait() // the next one is in a separate message, while the connection takes them
	}
	return errs
}

// more than a connection is handed at a time: some wait in the connection, the others before it.
const waiting = 200

// The time that a request has waited in the client is not part of the time-out that the server
// gets.
func TestTimeInTheClientIsSubtracted(t *testing.T) {
	inMisersWorld(t, func(w *actortest.World, s *miser, c *Client) {
		ctx, cancel := context.WithTimeout(w.T().Context(), 5*time.Second)
		defer cancel()
		errs := startCalls(w, ctx, c, waiting-1, []byte("small"))
		large := startCalls(w, ctx, c, 1, make([]byte, 1<<20))
		w.Advance(4900 * time.Millisecond)
		s.give()
		for range waiting - 1 {
			if err := <-errs; err != nil {
				w.T().Error(err)
			}
		}
		if err := <-large; err != nil {
			w.T().Error("a large one: ", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.calls) != 1+waiting {
			w.T().Errorf("%d calls have come, want %d", len(s.calls), 1+waiting)
		}
		for i, h := range s.calls[1:] {
			if left := h.Timeout(); left <= 0 || left > 100*time.Millisecond {
				w.T().Fatalf("request %d came 4.9 s late and says that %v of 5 s are left", i, left)
			}
		}
	})
}

// A request whose caller gave up before its turn is not sent.
func TestRequestsGivenUpAreNotSent(t *testing.T) {
	for name, end := range map[string]struct {
		with func(context.Context) (context.Context, context.CancelFunc)
		is   error
	}{
		"a deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 5*time.Second)
		}, ErrDeadline},
		"a cancel": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(5*time.Second, cancel)
			return ctx, cancel
		}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			inMisersWorld(t, func(w *actortest.World, s *miser, c *Client) {
				ctx, cancel := end.with(w.T().Context())
				defer cancel()
				large := startCalls(w, ctx, c, 1, make([]byte, 1<<20))
				errs := startCalls(w, ctx, c, waiting, []byte("small"))
				last := startCalls(w, ctx, c, 1, make([]byte, 1<<20))
				w.Advance(5 * time.Second)
				notSent := 0
				for range waiting {
					var e *Error
					if err := <-errs; !errors.Is(err, end.is) || !errors.As(err, &e) {
						w.T().Error(err)
					} else if e.Fate == FateNotSent {
						notSent++
					}
				}
				if err := <-large; !errors.Is(err, end.is) {
					w.T().Error(err)
				}
				want(w.T(), <-last, end.is, FateNotSent)
				if least := waiting - ahead.Most.Messages; notSent < least {
					w.T().Errorf("%d of %d callers know that their request was not sent, want %d", notSent, waiting, least)
				}
				s.give()
				if _, err := CallRaw(w.T().Context(), c, echo, nil, nil); err != nil {
					w.T().Error("the connection goes on: ", err)
				}
				w.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.calls) != 2 {
					w.T().Errorf("%d requests have come that nobody waits for", len(s.calls)-2)
				}
				if s.bytes > 64<<10 {
					w.T().Errorf("%d bytes have come", s.bytes)
				}
				if n := c.InFlight(); n != 0 {
					w.T().Errorf("%d calls are still in flight", n)
				}
			})
		})
	}
}

// If a call's deadline has passed when its turn comes, the call ends, although its context has not
// ended yet.
func TestLateContext(t *testing.T) {
	inMisersWorld(t, func(w *actortest.World, s *miser, c *Client) {
		errs := startCalls(w, dozing{w.T().Context(), time.Now().Add(time.Second)}, c, 3, nil)
		w.Advance(2 * time.Second)
		s.give()
		for range 3 {
			want(w.T(), <-errs, ErrDeadline, FateNotSent)
		}
		if n := c.InFlight(); n != 0 {
			w.T().Errorf("%d calls are still in flight", n)
		}
	})
}

// dozing is a context with a deadline that does not end it.
type dozing struct {
	context.Context
	at time.Time
}

func (d dozing) Deadline() (time.Time, bool) { return d.at, true }

// A connection to a server that drains ends also if its last requests were given up before they
// were sent.
func TestDrainsWithNothingSent(t *testing.T) {
	inMisersWorld(t, func(w *actortest.World, s *miser, c *Client) {
		ctx, cancel := context.WithCancel(w.T().Context())
		errs := startCalls(w, ctx, c, 3, nil)
		l := c.link()
		w.System().Root.Send(s.conn, rdma.NewSend(frame(wire.Header{Type: wire.FrameDrain}, "")))
		w.Wait()
		cancel()
		for range 3 {
			<-errs
		}
		s.give()
		select {
		case <-l.gone:
		case <-time.After(time.Minute):
			w.T().Error("the connection is still there")
		}
	})
}

// At the server a time-out begins when the request arrives, also if the request then waits for
// others.
func TestExpiresAtTheServer(t *testing.T) {
	var mu sync.Mutex
	var called []string
	slow := func(_ context.Context, q, reply []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		called = append(called, string(q))
		time.Sleep(time.Second)
		return reply, nil
	}
	inWorld(t, rigConfig{world: mayStall}, func(s *Server) { HandleRaw(s, echo, slow, HandlerConfig{OnLoop: true}) }, func(r *rig) {
		c := r.rawClient()
		arg, _ := wire.PutTimeout(900 * time.Millisecond)
		c.say(declareEcho, frame(wire.Header{Type: wire.FrameCall, Call: 0}, "first"), frame(wire.Header{Type: wire.FrameCall, Call: 1, Arg: arg}, "second"),
			frame(wire.Header{Type: wire.FrameCall, Call: 2, Arg: 2 * arg}, "third"))
		for b := actortest.Next[*rdma.Received](c.Probe).Data; len(b) > 0; {
			h, _, rest, err := wire.ParseFrame(b)
			if err != nil {
				r.t.Fatal(err)
			}
			if late := h.Call == 1; late != (h.Type == wire.FrameError && h.Flags == wire.FlagRefused && Code(h.Number) == CodeDeadline) {
				r.t.Errorf("call %d was answered with %+v", h.Call, h)
			}
			b = rest
		}
		mu.Lock()
		defer mu.Unlock()
		if len(called) != 2 || called[0] != "first" || called[1] != "third" {
			r.t.Errorf("the handler was called for %q", called)
		}
	})
}
