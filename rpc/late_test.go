package rpc

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// giveUpAfter returns the pattern of net/http's TimeoutHandler: it returns after d, also if next
// has not returned by then. done gets next's error when it has.
func giveUpAfter(d time.Duration, done chan<- error) Interceptor {
	return func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		returned := make(chan error, 1)
		go func() {
			err := next(ctx)
			returned <- err
			if done != nil {
				done <- err
			}
		}()
		select {
		case err := <-returned:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deafTo returns an interceptor behind which contexts do not end early.
func deafTo(ctx context.Context, _ *Info, next func(context.Context) error) error {
	return next(context.WithoutCancel(ctx))
}

var (
	slow = NewRawMethod("test.Slow")
	hold = NewRawMethod("test.Hold")
)

// An interceptor of the server may return before next has. The abandoned handler keeps its request,
// and its answer is dropped: other calls have separate memory, and their connections go on.
func TestServersInterceptorReturnsBeforeNext(t *testing.T) {
	const clients, size, others = 3, 700, 40
	for name, onLoop := range map[string]bool{"goroutine": false, "loop": true} {
		t.Run(name, func(t *testing.T) {
			var began, release, fill chan struct{}
			var late chan []byte // requests as the abandoned handlers see them in the end
			timeout := giveUpAfter(time.Second, nil)
			guard := func(ctx context.Context, call *Info, next func(context.Context) error) error {
				switch {
				case call.Method == "test.Slow" && onLoop: // must not wait for a while
					go next(ctx) // its error is dropped
					<-began
					return errTaken
				case call.Method == "test.Slow":
					return timeout(ctx, call, next)
				}
				return next(ctx)
			}
			inWorld(t, rigConfig{server: ServerConfig{Interceptors: []Interceptor{guard}}}, func(s *Server) {
				began, release, fill = make(chan struct{}, clients), make(chan struct{}), make(chan struct{})
				late = make(chan []byte, clients)
				handleEcho(s)
				HandleRaw(s, slow, func(_ context.Context, q, reply []byte) ([]byte, error) {
					began <- struct{}{}
					<-release
					for range size {
						reply = append(reply, 'L')
					}
					late <- bytes.Clone(q)
					return reply, nil
				}, HandlerConfig{OnLoop: onLoop})
				HandleRaw(s, hold, func(_ context.Context, q, reply []byte) ([]byte, error) {
					reply = append(reply, q...)
					<-fill
					return reply, nil
				})
			}, func(r *rig) {
				var wg sync.WaitGroup
				for i := range clients {
					c := r.dial()
					defer c.Close()
					_, err := CallRaw(r.t.Context(), c, slow, bytes.Repeat([]byte{byte('a' + i)}, size), nil)
					if is := errors.Is(err, ErrDeadline) || errors.Is(err, errTaken); !is {
						r.t.Errorf("the call that was given up: %v", err)
					}
					if !onLoop {
						<-began
					}
					for j := range others {
						wg.Go(func() {
							q := bytes.Repeat([]byte{byte('0' + j)}, size)
							if got, err := CallRaw(r.t.Context(), c, hold, q, nil); err != nil || !bytes.Equal(got, q) {
								r.t.Errorf("another call's answer is %.20q, %v, want %.20q", got, err, q)
							}
						})
					}
				}
				r.Wait()
				close(release)
				var kept []byte
				for range clients {
					q := <-late
					if len(q) != size || !bytes.Equal(q, bytes.Repeat(q[:1], size)) || q[0] < 'a' {
						r.t.Errorf("the request of a handler that was left behind is %.20q now", q)
					}
					kept = append(kept, q[0])
				}
				if slices.Sort(kept); string(kept) != "abc" {
					r.t.Errorf("the handlers that were left behind have the requests %q", kept)
				}
				r.Wait()
				close(fill)
				wg.Wait()
				r.good()
				r.nothingKept()
			})
		})
	}
}

// While a handler that was left behind runs, it has its place, and its request counts.
func TestHandlerLeftBehindHasItsPlace(t *testing.T) {
	const calls, size = 8, 100 << 10
	cfg := ServerConfig{MaxCallsInAll: calls, MaxMessage: 2 * size, Interceptors: []Interceptor{giveUpAfter(time.Second, nil)}}
	var release chan struct{}
	inWorld(t, rigConfig{server: cfg}, func(s *Server) {
		release = make(chan struct{})
		HandleRaw(s, slow, func(context.Context, []byte, []byte) ([]byte, error) { <-release; return nil, nil })
		HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil })
	}, func(r *rig) {
		refused := 0
		for range calls + 1 {
			_, err := CallRaw(r.t.Context(), r.c, slow, make([]byte, size), nil)
			if errors.Is(err, ErrOverloaded) {
				refused++
			} else {
				want(r.t, err, ErrDeadline, FateAnswered)
			}
		}
		r.Wait()
		if refused == 0 || refused > calls/2 {
			r.t.Errorf("%d of %d calls were refused, with handlers left behind in the places", refused, calls+1)
		}
		if here, _ := r.s.kept(); here < (calls+1-refused)*size {
			r.t.Errorf("the requests of handlers that were left behind count %d bytes", here)
		}
		if n := r.s.InFlight(); n != 0 {
			r.t.Errorf("%d calls are in flight: all were answered", n)
		}
		close(release)
		r.nothingKept()
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
	})
}

// An interceptor of the client may return before next has. Nothing is written into the caller's
// buffer when CallRaw has returned, and the request is the caller's again.
func TestClientsInterceptorReturnsBeforeNext(t *testing.T) {
	const calls, size = 20, 700
	var release chan struct{}
	var mu sync.Mutex
	var got [][]byte
	done := make(chan error, calls)
	cfg := ClientConfig{Interceptors: []Interceptor{giveUpAfter(time.Second, done), deafTo}}
	inWorld(t, rigConfig{client: cfg}, func(s *Server) {
		release = make(chan struct{})
		HandleRaw(s, slow, func(_ context.Context, q, _ []byte) ([]byte, error) {
			mu.Lock()
			got = append(got, bytes.Clone(q))
			mu.Unlock()
			<-release
			return bytes.Repeat([]byte{'L'}, size), nil
		})
	}, func(r *rig) {
		buffers := make([][]byte, calls)
		for i := range buffers {
			q := bytes.Repeat([]byte{'q'}, size)
			buffer := bytes.Repeat([]byte{'.'}, size)
			reply, err := CallRaw(r.t.Context(), r.c, slow, q, buffer[:0])
			if !errors.Is(err, context.DeadlineExceeded) || len(reply) != 0 {
				r.t.Fatalf("%q, %v", reply, err)
			}
			for j := range q {
				q[j] = 'X'
			}
			buffers[i] = buffer
		}
		r.Wait()
		close(release)
		for range calls {
			if err := <-done; err != nil {
				r.t.Errorf("the call that nobody waits for has failed: %v", err)
			}
		}
		for _, b := range buffers {
			if !bytes.Equal(b, bytes.Repeat([]byte{'.'}, size)) {
				r.t.Fatalf("the caller's buffer has %.20q", b)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, q := range got {
			if !bytes.Equal(q, bytes.Repeat([]byte{'q'}, size)) {
				r.t.Errorf("the server has received %.20q", q)
			}
		}
	})
}

// A request that is repeated after an interceptor has returned is still the one that the caller has
// given.
func TestRequestIsTheCallersAgain(t *testing.T) {
	var got chan string
	cfg := ClientConfig{
		Retry:        Retry{Attempts: 2, Backoff: 5 * time.Second, Max: 5 * time.Second},
		Interceptors: []Interceptor{giveUpAfter(time.Second, nil), deafTo},
	}
	inWorld(t, rigConfig{client: cfg}, func(s *Server) {
		got = make(chan string, 1)
		HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
			got <- string(q)
			return append(reply, q...), nil
		})
	}, func(r *rig) {
		r.s.draining.Store(true) // refuses the first attempt
		q := []byte("the caller's")
		if _, err := CallRaw(r.t.Context(), r.c, echo, q, nil); !errors.Is(err, context.DeadlineExceeded) {
			r.t.Fatal(err)
		}
		r.s.draining.Store(false)
		copy(q, "xxxxxxxxxxxxx")
		if sent := <-got; sent != "the caller's" {
			r.t.Errorf("the second attempt has sent %q", sent)
		}
	})
}

// A stream that is opened after its interceptor has returned is closed, and its Ended function is
// called.
func TestStreamOpenedTooLate(t *testing.T) {
	ends := make(chan error, 4)
	hear := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		call.Ended = func(err error) { ends <- err }
		time.Sleep(2 * time.Second)
		return next(context.WithoutCancel(ctx))
	}
	soon := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		err := next(ctx)
		time.Sleep(5 * time.Second)
		return err
	}
	for name, is := range map[string][]Interceptor{
		"not begun":  {giveUpAfter(time.Second, nil), hear},
		"just begun": {giveUpAfter(3*time.Second, nil), hear, soon},
	} {
		inWorld(t, rigConfig{client: ClientConfig{Interceptors: is}}, func(s *Server) { handleCount(s) }, func(r *rig) {
			if _, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1)); !errors.Is(err, context.DeadlineExceeded) {
				r.t.Fatal(err)
			}
			r.Advance(time.Minute)
			if c, s := r.c.InFlight(), r.s.InFlight(); c+s != 0 {
				r.t.Errorf("%s: %d and %d streams are open that nobody has", name, c, s)
			}
			if opened := name == "just begun"; opened != (len(ends) == 1) {
				r.t.Errorf("%s: the end was reported %d times", name, len(ends))
			} else if opened {
				if err := <-ends; !errors.Is(err, context.Canceled) {
					r.t.Errorf("%s: the end is %v", name, err)
				}
			}
		})
	}
}
