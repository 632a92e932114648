package rpc

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/health"
)

// handleWatch gives a server a health service whose streams watch handles.
func handleWatch(s *Server, watch func(ctx context.Context, out *Sender[health.Status]) error) {
	method := NewStream[health.Request, health.Status](health.Watch)
	HandleStream(s, method, func(ctx context.Context, _ *health.Request, out *Sender[health.Status]) error {
		return watch(ctx, out)
	})
}

// watchedFleet runs test with servers whose health is watched by watch, and a pool that is not
// connected yet.
func watchedFleet(t *testing.T, n int, cfg PoolConfig, watch func(ctx context.Context, out *Sender[health.Status]) error, test func(f *fleet)) {
	t.Helper()
	cfg.Service.Health = new(string)
	inFleet(t, n, cfg, func(f *fleet) {
		for _, m := range f.members {
			handleWatch(m.s, watch)
		}
		test(f)
	})
}

// A server that accepts the watch of its health, and reports nothing, gets no calls, like one that
// is not connected: they fail when it could have been dialled, or at their deadlines, and the error
// says why. When it reports, it gets calls.
func TestSilentWatch(t *testing.T) {
	reports := make(chan health.Status)
	watchedFleet(t, 1, PoolConfig{}, func(ctx context.Context, out *Sender[health.Status]) error {
		select {
		case now := <-reports:
			return errors.Join(out.Send(&now), <-hang(ctx))
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func(f *fleet) {
		reports = make(chan health.Status)
		says := func(err error) {
			f.t.Helper()
			if err == nil || !strings.Contains(err.Error(), "has not reported yet") {
				f.t.Errorf("%v does not say that the health is unknown", err)
			}
		}
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		_, err := CallRaw(ctx, f.c, who, nil, nil)
		want(f.t, err, ErrDeadline, FateNotSent)
		says(err)
		_, err = CallRaw(f.t.Context(), f.c, who, nil, nil)
		want(f.t, err, ErrUnavailable, FateNotSent)
		says(err)
		if d := f.Elapsed(); d > 11*time.Second {
			f.t.Errorf("the call fails after %v", d)
		}
		says(f.c.Servers()[0].Err)
		says(f.c.Connect(f.t.Context()))
		reports <- health.Serving
		f.Wait()
		if f.call(f.t.Context()); f.c.Servers()[0].Err != nil {
			f.t.Errorf("it serves: %v", f.c.Servers()[0].Err)
		}
	})
}

// hang returns a channel of ctx's error, when it ends.
func hang(ctx context.Context) <-chan error {
	c := make(chan error, 1)
	context.AfterFunc(ctx, func() { c <- ctx.Err() })
	return c
}

// A watch that fails says nothing about the server's calls: it ejects no server, neither a refused
// one for 100 ms nor failed ones for longer.
func TestFailedWatchesEjectNoServer(t *testing.T) {
	for name, why := range map[string]error{"overloaded": ErrOverloaded, "internal": ErrInternal} {
		t.Run(name, func(t *testing.T) {
			var tries atomic.Int64
			watchedFleet(t, 2, PoolConfig{Eject: 2}, func(context.Context, *Sender[health.Status]) error {
				tries.Add(1)
				return why
			}, func(f *fleet) {
				f.connected()
				for range 300 {
					for i := range f.members {
						if f.isEjected(i) {
							f.t.Errorf("server %d is ejected after %v", i, f.Elapsed())
							return
						}
					}
					f.Advance(100 * time.Millisecond)
				}
				if n := tries.Load(); n < 6 {
					f.t.Errorf("%d watches in 30 s", n)
				}
			})
		})
	}
}

// Clients that watch one overloaded server try again at different times.
func TestWatchesAreRetriedAtRandom(t *testing.T) {
	at := make(map[time.Duration]bool)
	var f *fleet
	watchedFleet(t, 1, PoolConfig{}, func(context.Context, *Sender[health.Status]) error {
		at[f.Elapsed().Round(time.Millisecond)] = true
		return ErrOverloaded
	}, func(in *fleet) {
		f = in
		for range 20 {
			c := NewPool(f.Runtime(), Static(f.addrs()...), PoolConfig{ClientConfig: f.c.cfg})
			defer c.Close()
			if err := c.Connect(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
		}
		f.Advance(time.Minute)
		if len(at) < 40 {
			f.t.Errorf("20 clients have tried at %d times", len(at))
		}
	})
}

// The watches of a pool are no streams of its caller: it may watch more servers than it may have
// streams open.
func TestWatchesTakeNoStreams(t *testing.T) {
	watchedFleet(t, 3, PoolConfig{ClientConfig: ClientConfig{MaxStreams: 2}}, func(ctx context.Context, out *Sender[health.Status]) error {
		now := health.NotServing
		return errors.Join(out.Send(&now), <-hang(ctx))
	}, func(f *fleet) {
		if err := f.c.Connect(f.t.Context()); err == nil {
			f.t.Error("a server serves whose health was not asked for")
		}
		f.Wait()
		if n := f.c.streams.Load(); n != 0 {
			f.t.Errorf("%d streams are open", n)
		}
	})
}

// A server whose health fails for a moment while it is ejected starts slowly when its ejection
// ends, like every other.
func TestSlowStartAfterAnEjectionAndAReport(t *testing.T) {
	cfg := PoolConfig{EjectFor: time.Minute}
	cfg.Service.Health = new(string)
	inFleet(t, 3, cfg, func(f *fleet) {
		reports := make(chan health.Status)
		for i, m := range f.members {
			handleWatch(m.s, func(ctx context.Context, out *Sender[health.Status]) error {
				for now := health.Serving; ; {
					if err := out.Send(&now); err != nil || i > 0 {
						return <-hang(ctx)
					}
					select {
					case now = <-reports:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			})
		}
		f.connected()
		f.Advance(time.Minute)
		f.eject(0)
		reports <- health.NotServing
		reports <- health.Serving
		f.Wait()
		if !f.isEjected(0) {
			f.t.Fatal("a report ends the ejection")
		}
		f.Advance(time.Until(f.c.Servers()[0].Ejected) + time.Millisecond)
		before := f.members[0].called()
		f.crowd(300)
		if n := f.members[0].called() - before; n == 0 || n > 60 {
			f.t.Errorf("%d of 300 calls immediately after its ejection", n)
		}
	})
}
