package rpc

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/share"
)

// work is a method whose handler takes a virtual time.
var work = NewRawMethod("test.Work")

// fewPlaces lets calls wait for so many places, of which one connection may have half.
func fewPlaces(n int, wait time.Duration) rigConfig {
	return rigConfig{server: ServerConfig{MaxCallsInAll: n, MaxWait: wait}}
}

// handleWork registers a handler of work that takes d, or less if its caller gives up. It returns
// the number of calls that began.
func handleWork(s *Server, d time.Duration) *atomic.Int64 {
	n := new(atomic.Int64)
	HandleRaw(s, work, func(ctx context.Context, q, reply []byte) ([]byte, error) {
		n.Add(1)
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return append(reply, q...), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	return n
}

// calls makes n calls of work, numbered from 0, one after the other, and returns their results when
// all have ended.
func (r *rig) calls(c *Client, n int) (errs []error) {
	errs = make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, errs[i] = CallRaw(r.t.Context(), c, work, []byte{byte(i)}, nil) })
		r.Wait()
	}
	all.Wait()
	return errs
}

// refusals returns how many of the calls were refused, and asserts that all others were answered.
func refusals(t *testing.T, errs []error) (n int) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			n++
			want(t, err, ErrOverloaded, FateRefused)
		}
	}
	return n
}

// inspected returns the counters of a method of the server's.
func (r *rig) inspected(m RawMethod) MethodInfo {
	all := r.s.Inspect()
	i := slices.IndexFunc(all, func(i MethodInfo) bool { return i.Method == m.m.name })
	return all[i]
}

// A burst of calls, more than there are places, is answered if calls may wait: in the order of
// their arrival. Without MaxWait those beyond the places are refused. So are they if there is no
// place in the queue.
func TestBurstWaits(t *testing.T) {
	for wait, refused := range map[time.Duration]int{0: 10, time.Second: 0} {
		var mu sync.Mutex
		var order []byte
		inWorld(t, fewPlaces(4, wait), func(s *Server) {
			HandleRaw(s, work, func(_ context.Context, q, _ []byte) ([]byte, error) {
				mu.Lock()
				order = append(order, q...)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
				return nil, nil
			})
		}, func(r *rig) {
			if n := refusals(r.t, r.calls(r.c, 12)); n != refused {
				r.t.Errorf("with MaxWait %v %d calls of 12 are refused, want %d", wait, n, refused)
			}
			for i, n := range order {
				if d := i - int(n); d < -1 || d > 1 { // two handlers begin at the same time
					r.t.Errorf("with MaxWait %v the calls were handled in the order %v", wait, order)
					break
				}
			}
			if n := refusals(r.t, r.calls(r.c, 30)); wait > 0 && (n == 0 || n > 15) {
				r.t.Errorf("%d calls of 30 find no place in the queue", n)
			}
			r.quiet()
		})
	}
}

// A call waits no longer than MaxWait and a sixteenth, and is then refused with an error
// that names it. Its handler is not called. It counts as failed and as one that has waited in vain.
func TestWaitIsBounded(t *testing.T) {
	const wait, calls = 800 * time.Millisecond, 9
	var began *atomic.Int64
	inWorld(t, fewPlaces(4, wait), func(s *Server) { began = handleWork(s, time.Hour) }, func(r *rig) {
		busy, cancel := context.WithCancel(r.t.Context())
		for range 2 {
			go func() { _, _ = CallRaw(busy, r.c, work, nil, nil) }()
		}
		r.Wait()
		ended := make(chan error, calls)
		for range calls {
			begin := r.Elapsed()
			go func() {
				_, err := CallRaw(r.t.Context(), r.c, work, nil, nil)
				if d := r.Elapsed() - begin; d < wait || d > wait+wait/16 {
					r.t.Errorf("a call was refused after %v", d)
				}
				ended <- err
			}()
			r.Advance(10 * time.Millisecond)
		}
		if i := r.inspected(work); i.Waiting != calls || i.InFlight != calls+2 {
			r.t.Errorf("%d calls wait, of %d", i.Waiting, i.InFlight)
		}
		for range calls {
			err := <-ended
			want(r.t, err, ErrOverloaded, FateRefused)
			if err == nil || !strings.Contains(err.Error(), "800ms (ServerConfig.MaxWait)") {
				r.t.Errorf("the error is %v", err)
			}
		}
		r.Wait()
		i := r.inspected(work)
		if i.Waiting != 0 || i.InFlight != 2 || i.WaitedOut != calls || i.Failed != calls || i.Late != 0 || began.Load() != 2 {
			r.t.Errorf("afterwards %+v; %d handlers began", i, began.Load())
		}
		cancel()
		r.quiet()
	})
}

// While the queue is overloaded, the newest call of a client is answered in time, and the oldest
// are refused: otherwise all would be late.
func TestOverloadAnswersInTime(t *testing.T) {
	const wait, took = 100 * time.Millisecond, 10 * time.Millisecond
	inWorld(t, fewPlaces(16, wait), func(s *Server) { handleWork(s, took) }, func(r *rig) {
		var mu sync.Mutex
		var all sync.WaitGroup
		var times []time.Duration
		for range 2000 { // twice as many as 15 places can answer
			begin := r.Elapsed()
			all.Go(func() {
				_, err := CallRaw(r.t.Context(), r.c, work, nil, nil)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					times = append(times, r.Elapsed()-begin)
				}
			})
			r.Advance(took / 30)
		}
		all.Wait()
		slices.Sort(times)
		if n := len(times); n < 950 || times[n/2] > 3*took {
			r.t.Errorf("%d calls of 2,000 are answered, half of them within %v", n, times[n/2])
		}
		r.quiet()
	})
}

// A call that waits is answered once, whatever ends it, and its handler is not called. Nothing of
// it is kept.
func TestWaitingCallEndsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r *rig, cancel func())
		is   error
		fate Fate
	}{
		"place":      {end: func(r *rig, _ func()) { r.Advance(time.Minute) }},
		"cancel":     {func(_ *rig, cancel func()) { cancel() }, context.Canceled, FateUnknown},
		"deadline":   {func(r *rig, _ func()) { r.Advance(5 * time.Second) }, ErrDeadline, FateUnknown},
		"MaxWait":    {func(r *rig, _ func()) { r.Advance(12 * time.Second) }, ErrOverloaded, FateRefused},
		"connection": {func(r *rig, _ func()) { r.Disconnect(r.c.link().id) }, ErrUnavailable, FateUnknown},
		"drain": {func(r *rig, _ func()) {
			go func() { _ = r.s.Shutdown(r.within(time.Hour)) }()
			r.Wait()
		}, ErrDraining, FateRefused},
		"place of a server that drains": {func(r *rig, _ func()) {
			r.s.draining.Store(true) // as if a place became free before the rest of Shutdown
			r.Advance(2 * time.Second)
		}, ErrDraining, FateRefused},
		"Close": {func(r *rig, _ func()) { r.s.Close() }, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var began *atomic.Int64
			busy := time.Hour
			if strings.HasPrefix(name, "place") {
				busy = time.Second
			}
			inWorld(t, fewPlaces(1, 10*time.Second), func(s *Server) { began = handleWork(s, busy) }, func(r *rig) {
				other := r.dial()
				free, release := context.WithCancel(r.t.Context())
				var running sync.WaitGroup
				running.Go(func() { _, _ = CallRaw(free, other, work, nil, nil) })
				r.Wait()
				before := began.Load()
				ctx, cancel := context.WithCancel(r.t.Context())
				if name == "deadline" {
					ctx = r.within(5 * time.Second)
				}
				ended := make(chan error, 1)
				go func() { _, err := CallRaw(ctx, r.c, work, nil, nil); ended <- err }()
				r.Wait()
				if n := r.s.shares.Taken()[share.Waiting]; n != 1 {
					r.t.Fatalf("%d calls wait", n)
				}
				c.end(r, cancel)
				begin := r.Elapsed()
				switch err := <-ended; {
				case c.is != nil:
					want(r.t, err, c.is, c.fate)
				case name != "Close" && err != nil:
					r.t.Error(err)
				}
				if d := r.Elapsed() - begin; d > time.Second {
					r.t.Errorf("the call went on for %v", d)
				}
				r.Wait()
				if n := r.s.shares.Taken()[share.Waiting]; n != 0 {
					r.t.Errorf("afterwards %d calls wait", n)
				}
				release()
				running.Wait()
				r.Advance(time.Minute) // the timer of the queue expires
				if n := began.Load() - before; n > 0 && name != "place" {
					r.t.Errorf("%d handlers were called", n)
				}
				r.nothingKept()
				if n := r.s.InFlight(); n != 0 {
					r.t.Errorf("%d calls are in flight", n)
				}
				cancel()
				other.Close()
			})
		})
	}
}

// A call that was taken out of the queue, and has not begun yet, is answered once, whatever ends it
// then, and its handler is not called. Shutdown waits for it: an answer behind the last drain frame
// would break the protocol. Nothing of the call is kept.
func TestCallEndsBetweenQueueAndHandler(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r *rig, cancel func())
		is   error
		fate Fate
	}{
		"cancel":     {func(_ *rig, cancel func()) { cancel() }, context.Canceled, FateUnknown},
		"deadline":   {func(r *rig, _ func()) { r.Advance(5 * time.Second) }, ErrDeadline, FateUnknown},
		"connection": {func(r *rig, _ func()) { r.Disconnect(r.c.link().id) }, ErrUnavailable, FateUnknown},
		"Shutdown":   {func(r *rig, _ func()) { go func() { _ = r.s.Shutdown(r.within(time.Hour)) }() }, ErrDraining, FateRefused},
	} {
		t.Run(name, func(t *testing.T) {
			var began *atomic.Int64
			inWorld(t, fewPlaces(1, 10*time.Second), func(s *Server) { began = handleWork(s, 0) }, func(r *rig) {
				if _, err := CallRaw(r.t.Context(), r.c, work, nil, nil); err != nil {
					t.Fatal(err)
				}
				conn := r.declared()
				if !conn.share.Take(share.Calls, 1) { // as a call would that is being handled
					t.Fatal("there is no place")
				}
				ctx, cancel := context.WithCancel(r.t.Context())
				defer cancel()
				if name == "deadline" {
					ctx = r.within(5 * time.Second)
				}
				ended := make(chan error, 1)
				go func() { _, err := CallRaw(ctx, r.c, work, nil, nil); ended <- err }()
				r.Wait()
				next := conn.share.GiveCall()
				c.end(r, cancel)
				r.Wait()
				if len(ended) > 0 && name == "Shutdown" {
					t.Error("Shutdown did not wait for the call")
				}
				r.s.beginWaiting(next)
				want(t, <-ended, c.is, c.fate)
				r.Wait()
				if i := r.inspected(work); i.OK != 1 || i.Failed != 1 || began.Load() != 1 {
					t.Errorf("afterwards %+v; %d handlers began", i, began.Load())
				}
				r.quiet()
			})
		})
	}
}

// A request in parts waits for its place when it has arrived, and is answered whole.
func TestLargeRequestWaits(t *testing.T) {
	cfg := wide
	cfg.server.MaxCallsInAll, cfg.server.MaxWait = 4, 10*time.Second
	inWorld(t, cfg, func(s *Server) { handleWork(s, time.Second) }, func(r *rig) {
		for range 3 {
			go func() { _, _ = CallRaw(r.t.Context(), r.c, work, nil, nil) }()
		}
		r.Wait()
		begin := r.Elapsed()
		got, err := CallRaw(r.t.Context(), r.c, work, huge, nil)
		if d := r.Elapsed() - begin; err != nil || !bytes.Equal(got, huge) || d < 2*time.Second {
			r.t.Errorf("%d bytes after %v: %v", len(got), d, err)
		}
		r.quiet()
	})
}

// A client that fills the queue, over many connections, delays the calls of another machine by a
// call each, and has none of them refused. Its refused calls' errors name both limits.
func TestGreedyClientInTheQueue(t *testing.T) {
	const took = 10 * time.Millisecond
	inWorld(t, fewPlaces(16, time.Second), func(s *Server) { handleWork(s, took) }, func(r *rig) {
		stop := make(chan struct{})
		var greedy sync.WaitGroup
		var full atomic.Int64 // calls that were refused without waiting
		for range 4 {
			c := r.dial()
			for range 50 {
				greedy.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							if _, err := CallRaw(r.t.Context(), c, work, nil, nil); err != nil {
								if strings.Contains(err.Error(), "16 places for calls") && strings.Contains(err.Error(), "64 places to wait (MaxWait)") {
									full.Add(1)
								}
								time.Sleep(took)
							}
						}
					}
				})
			}
			defer c.Close()
		}
		r.Advance(time.Second)
		if n := r.s.shares.Taken()[share.Waiting]; n < 40 {
			r.t.Fatalf("only %d calls wait", n)
		}
		other, err := Dial(r.t.Context(), r.at("10.0.0.11"), r.addr)
		if err != nil {
			r.t.Fatal(err)
		}
		for range 50 {
			begin := r.Elapsed()
			if _, err := CallRaw(r.t.Context(), other, work, nil, nil); err != nil {
				r.t.Fatal("another client's call: ", err)
			}
			if d := r.Elapsed() - begin; d > 3*took {
				r.t.Fatalf("another client's call took %v", d)
			}
		}
		close(stop)
		greedy.Wait()
		if full.Load() == 0 {
			r.t.Error("no error names the places for calls and those to wait")
		}
		other.Close()
		r.quiet()
	})
}

// Clients call, give up, lose their connections and come back while calls wait, and in the end the
// server drains. Every call returns once, no handler is called for a call that was refused, and
// nothing is kept.
func TestCallsThatWaitModel(t *testing.T) {
	for seed := range uint64(5) {
		var began *atomic.Int64
		inWorld(t, fewPlaces(6, 50*time.Millisecond), func(s *Server) { began = handleWork(s, 10*time.Millisecond) }, func(r *rig) {
			random := rand.New(rand.NewPCG(seed, 1))
			clients := []*Client{r.c, r.dial(), r.dial()}
			var all sync.WaitGroup
			var executed, unsure atomic.Int64
			for range 1000 {
				c, within := clients[random.IntN(3)], time.Duration(1+random.IntN(100))*time.Millisecond
				all.Go(func() {
					ctx, cancel := context.WithTimeout(r.t.Context(), within)
					defer cancel()
					_, err := CallRaw(ctx, c, work, nil, nil)
					e, _ := errors.AsType[*Error](err)
					switch {
					case err == nil:
						executed.Add(1)
					case !e.Fate.NotExecuted():
						unsure.Add(1)
					}
				})
				r.Advance(time.Duration(random.IntN(3)) * time.Millisecond)
				if l := c.link(); l != nil && random.IntN(100) == 0 {
					r.Disconnect(l.id)
				}
			}
			if err := r.s.Shutdown(r.within(time.Minute)); err != nil {
				r.t.Error(err)
			}
			all.Wait()
			r.Advance(time.Second)
			r.quiet()
			if n, least, more := began.Load(), executed.Load(), unsure.Load(); n < least || n > least+more || least < 100 {
				r.t.Errorf("seed %d: %d handlers were called, %d calls were answered, and %d may have been", seed, n, least, more)
			}
			clients[1].Close()
			clients[2].Close()
		})
	}
}

// The same with all processors, over iWARP: no handler is called for a call that was refused, and
// every call returns, while a server drains or is closed.
func TestCallsThatWaitRace(t *testing.T) {
	p := echoPair(t, HandlerConfig{})
	for round := range 12 {
		var began, executed, unsure atomic.Int64
		s := NewServer(p.there, ServerConfig{MaxCallsInAll: 3, MaxWait: 2 * time.Millisecond})
		HandleRaw(s, work, func(context.Context, []byte, []byte) ([]byte, error) {
			began.Add(1)
			time.Sleep(50 * time.Microsecond)
			return nil, nil
		})
		at, err := s.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		enough := make(chan struct{})
		var all sync.WaitGroup
		for range 3 {
			c, err := Dial(t.Context(), p.here, at.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for i := range 10 {
				all.Go(func() {
					for {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i)*time.Millisecond)
						_, err := CallRaw(ctx, c, work, nil, nil)
						cancel()
						e, _ := errors.AsType[*Error](err)
						switch {
						case err == nil:
							if executed.Add(1) == 50 {
								close(enough)
							}
						case !e.Fate.NotExecuted():
							unsure.Add(1)
						case !errors.Is(err, ErrOverloaded) && !errors.Is(err, ErrDeadline):
							return // the server has ended
						}
					}
				})
			}
		}
		<-enough
		if round%4 > 0 {
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
		s.Close()
		all.Wait()
		if n, least, more := began.Load(), executed.Load(), unsure.Load(); n < least || n > least+more {
			t.Fatalf("%d handlers were called, %d calls were answered, and %d may have been", n, least, more)
		}
		// Close waits for no handler
		for end := time.Now().Add(10 * time.Second); s.shares.Taken() != (share.Amounts{}); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%v are taken", s.shares.Taken())
			}
		}
	}
}
