package rpc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// calling makes n calls of block, each on a goroutine, and gives their errors.
func (r *rig) calling(c *Client, n int) <-chan error {
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := CallRaw(r.t.Context(), c, block, nil, nil)
			errs <- err
		}()
	}
	r.Wait()
	return errs
}

func TestTooManyCalls(t *testing.T) {
	for name, cfg := range map[string]struct {
		rigConfig
		fate Fate
		says string
	}{
		"the client's limit":                  {rigConfig{client: ClientConfig{MaxCalls: 2}}, FateNotSent, "2 calls of the connection"},
		"the limit that the server announces": {rigConfig{server: ServerConfig{MaxCalls: 2}}, FateNotSent, "2 calls of the connection"},
		// one is kept for another connection, and one for another address
		"the server's for all its connections": {rigConfig{server: ServerConfig{MaxCallsInAll: 4}}, FateRefused, "4 places for calls (ServerConfig.MaxCallsInAll)"},
	} {
		t.Run(name, func(t *testing.T) {
			var b *blocking
			inWorld(t, cfg.rigConfig, func(s *Server) {
				b = handleBlock(s)
				handleEcho(s)
			}, func(r *rig) {
				errs := r.calling(r.c, 2)
				begin := r.Elapsed()
				for range 10 {
					_, err := CallRaw(r.t.Context(), r.c, echo, nil, nil)
					want(r.t, err, ErrOverloaded, cfg.fate)
					if !strings.Contains(err.Error(), cfg.says) {
						r.t.Errorf("%v: it does not name the limit", err)
					}
				}
				if d := r.Elapsed() - begin; d != 0 {
					r.t.Errorf("a refusal took %v", d)
				}
				close(b.release)
				for range 2 {
					if err := <-errs; err != nil {
						r.t.Error(err)
					}
				}
				if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
					r.t.Error(err)
				}
			})
		})
	}
}

// A client that cancels all its calls cannot exceed its limit: a call is in flight until its
// handler has returned.
func TestCancelledCallsStillCount(t *testing.T) {
	stuck := make(chan struct{}, 100)
	inWorld(t, rigConfig{server: ServerConfig{MaxCalls: 3}}, func(s *Server) {
		release := make(chan struct{})
		// ignores its context
		HandleRaw(s, block, func(_ context.Context, _, reply []byte) ([]byte, error) {
			stuck <- struct{}{}
			<-release
			return reply, nil
		})
		HandleRaw(s, echo, func(_ context.Context, _, reply []byte) ([]byte, error) { close(release); return reply, nil }, HandlerConfig{OnLoop: true})
	}, func(r *rig) {
		for range 2 {
			_, err := CallRaw(r.within(time.Millisecond), r.c, block, nil, nil)
			want(r.t, err, ErrDeadline, FateUnknown)
		}
		r.calling(r.c, 1)
		_, err := CallRaw(r.t.Context(), r.c, block, nil, nil)
		want(r.t, err, ErrOverloaded, FateNotSent)
		if n := r.s.InFlight(); n != 3 || len(stuck) != 3 {
			r.t.Errorf("%d calls are in flight, %d handlers were called", n, len(stuck))
		}
		c := r.dial()
		defer c.Close()
		if _, err := CallRaw(r.t.Context(), c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
		r.Wait()
		if n := r.c.InFlight(); n != 0 {
			r.t.Errorf("%d calls are still in flight", n)
		}
	})
}

func TestDrain(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 3)
		drained := make(chan error, 1)
		go func() { drained <- r.s.Shutdown(r.t.Context()) }()
		r.Wait()
		_, err := CallRaw(r.t.Context(), r.c, block, nil, nil)
		want(r.t, err, ErrDraining, FateNotSent)
		if !isRetryable(false, err) {
			r.t.Error("a call that met a draining server may be repeated")
		}
		if _, err := Dial(r.t.Context(), r.Runtime(), r.addr); err == nil {
			r.t.Error("a draining server still listens")
		}
		r.Advance(time.Minute)
		select {
		case err := <-drained:
			r.t.Fatalf("drained with calls in flight: %v", err)
		default:
		}
		close(b.release)
		for range 3 {
			if err := <-errs; err != nil {
				r.t.Error(err)
			}
		}
		if err := <-drained; err != nil {
			r.t.Error(err)
		}
	})
}

// A request that arrives after the server has sent its drain frame is refused, and not executed.
func TestDrainRefusesWhatWasUnderWay(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 1)
		r.s.draining.Store(true) // the client is not notified
		_, err := CallRaw(r.t.Context(), r.c, block, nil, nil)
		want(r.t, err, ErrDraining, FateRefused)
		if len(b.began) != 1 {
			r.t.Errorf("%d handlers were called", len(b.began))
		}
		close(b.release)
		if err := <-errs; err != nil {
			r.t.Error(err)
		}
	})
}

func TestDrainGivesUp(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 1)
		begin := r.Elapsed()
		if err := r.s.Shutdown(r.within(time.Second)); !errors.Is(err, context.DeadlineExceeded) || r.Elapsed()-begin != time.Second {
			r.t.Error(err, r.Elapsed()-begin)
		}
		want(r.t, <-errs, ErrUnavailable, FateDelivered)
		if err := <-b.ended; !errors.Is(err, ErrUnavailable) {
			r.t.Errorf("the handler got %v", err)
		}
	})
}

func TestServerDiesInTheMiddle(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 2)
		r.Disconnect(r.c.link().id)
		for range 2 {
			err := <-errs
			want(r.t, err, ErrUnavailable, FateUnknown)
			if isRetryable(false, err) {
				r.t.Error("a call that may have been executed would be repeated")
			}
			if !errors.Is(<-b.ended, ErrUnavailable) {
				r.t.Error("the handler was not notified")
			}
		}
		_, err := CallRaw(r.t.Context(), r.c, block, nil, nil)
		want(r.t, err, ErrUnavailable, FateNotSent)
	})
}

func TestClientCloses(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 1)
		r.c.Close()
		want(r.t, <-errs, ErrClosed, FateUnknown)
		if !errors.Is(<-b.ended, ErrUnavailable) {
			r.t.Error("the handler was not notified")
		}
		_, err := CallRaw(r.t.Context(), r.c, block, nil, nil)
		want(r.t, err, ErrClosed, FateNotSent)
	})
}

func TestDialFails(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		if _, err := Dial(r.t.Context(), r.Runtime(), there+":9"); err == nil {
			r.t.Error("somebody answered")
		}
		r.Silence("10.0.0.9")
		begin := r.Elapsed()
		if _, err := Dial(r.within(time.Second), r.Runtime(), "10.0.0.9:1"); !errors.Is(err, context.DeadlineExceeded) {
			r.t.Error(err)
		}
		if d := r.Elapsed() - begin; d != time.Second {
			r.t.Errorf("it took %v", d)
		}
	})
}

func TestRetry(t *testing.T) {
	for _, c := range []struct {
		code Code
		fate Fate
		once bool // any method is repeated
		more bool // an idempotent one is
	}{
		{CodeOverloaded, FateNotSent, true, true},
		{CodeOverloaded, FateRefused, true, true},
		{CodeOverloaded, FateAnswered, false, false},
		{CodeDraining, FateNotSent, true, true},
		{CodeDraining, FateRefused, true, true},
		{CodeDraining, FateAnswered, false, false},
		{CodeUnavailable, FateNotSent, true, true},
		{CodeUnavailable, FateUnknown, false, true},
		{CodeUnavailable, FateDelivered, false, true},
		{CodeUnavailable, FateAnswered, false, false},
		{CodeDeadline, FateUnknown, false, false},
		{CodeDeadline, FateNotSent, false, false},
		{CodeCanceled, FateUnknown, false, false},
		{CodeInternal, FateAnswered, false, false},
		{CodeUnknownMethod, FateRefused, false, false},
		{CodeTooLarge, FateNotSent, false, false},
		{CodeClosed, FateNotSent, false, false},
		{CodeBadMessage, FateRefused, false, false},
		{1001, FateAnswered, false, false},
	} {
		err := error(&Error{Code: c.code, Fate: c.fate})
		if got := isRetryable(false, err); got != c.once {
			t.Errorf("%v: repeated %v, want %v", err, got, c.once)
		}
		if got := isRetryable(true, err); got != c.more {
			t.Errorf("%v: an idempotent call is repeated %v, want %v", err, got, c.more)
		}
	}
	if isRetryable(true, errors.New("another error")) {
		t.Error("an error of somebody else's is no reason")
	}
}

func TestRetriesUntilThereIsRoom(t *testing.T) {
	var b *blocking
	cfg := rigConfig{
		server: ServerConfig{MaxCallsInAll: 1},
		client: ClientConfig{Retry: Retry{Attempts: 20, Backoff: 10 * time.Millisecond, Max: 40 * time.Millisecond}},
	}
	inWorld(t, cfg, func(s *Server) {
		b = handleBlock(s)
		handleEcho(s)
	}, func(r *rig) {
		errs := r.calling(r.c, 1)
		begin := r.Elapsed()
		_, err := CallRaw(r.within(time.Hour), r.c, echo, nil, nil)
		want(r.t, err, ErrOverloaded, FateRefused)
		// 10+20+17*40 ms, a quarter more or less
		if d := r.Elapsed() - begin; d < 400*time.Millisecond || d > time.Second {
			r.t.Errorf("twenty attempts took %v", d)
		}
		begin = r.Elapsed()
		_, err = CallRaw(r.within(100*time.Millisecond), r.c, echo, nil, nil)
		want(r.t, err, ErrOverloaded, FateRefused)
		if d := r.Elapsed() - begin; d >= 100*time.Millisecond {
			r.t.Errorf("it took %v, and could have known before its 100 ms were over", d)
		}
		time.AfterFunc(100*time.Millisecond, func() { close(b.release) })
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
		if err := <-errs; err != nil {
			r.t.Error(err)
		}
	})
}

// A server that has no memory for a connection rejects it immediately. Its client does not wait
// until the request is too old, nor does a Shutdown.
func TestRejectsWhatItCannotAccept(t *testing.T) {
	inWorlds(t, handleEcho, func(r *rig) {
		r.Latency(there, 100*time.Millisecond)
		result := make(chan error, 1)
		go func() {
			_, err := Dial(r.within(time.Minute), r.Runtime(), r.addr)
			result <- err
		}()
		r.Advance(250 * time.Millisecond) // the client's request is on its way
		r.RunOut(unix.ENOMEM)
		r.Advance(2 * time.Second)
		r.RunOut(0)
		select {
		case err := <-result:
			want(r.t, err, ErrUnavailable, FateNotSent)
		default:
			r.t.Error("the client still waits")
		}
		if n := len(r.s.connections()); n != 1 {
			r.t.Errorf("the server has %d connections, want one", n)
		}
		r.good()
	})
}

// Requests of OnLoop handlers are small, unless their method has a limit of its own.
func TestOnLoopRequestsAreSmall(t *testing.T) {
	small, large := NewRawMethod("test.Small"), NewRawMethod("test.OnLoopLarge", MethodConfig{MaxRequest: 1 << 20})
	var called int
	inWorld(t, rigConfig{}, func(s *Server) {
		handle := func(_ context.Context, _, reply []byte) ([]byte, error) { called++; return reply, nil }
		for _, m := range []RawMethod{small, large} {
			HandleRaw(s, m, handle, HandlerConfig{OnLoop: true})
		}
	}, func(r *rig) {
		for _, n := range []int{0, onLoopRequest} {
			if _, err := CallRaw(r.t.Context(), r.c, small, make([]byte, n), nil); err != nil {
				r.t.Error(err)
			}
		}
		if _, err := CallRaw(r.t.Context(), r.c, large, make([]byte, 1<<20), nil); err != nil {
			r.t.Error(err)
		}
		_, err := CallRaw(r.t.Context(), r.c, small, make([]byte, onLoopRequest+1), nil)
		if want(r.t, err, ErrTooLarge, FateRefused); called != 3 {
			r.t.Errorf("%d handlers were called", called)
		}
	})
}
