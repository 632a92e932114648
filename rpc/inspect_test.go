package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// methodOf returns the counters of a method.
func methodOf(t *testing.T, infos []MethodInfo, name string) MethodInfo {
	t.Helper()
	for _, i := range infos {
		if i.Method == name {
			return i
		}
	}
	t.Errorf("nothing was counted of %s", name)
	return MethodInfo{}
}

// wantCounts asserts how many calls have ended how.
func wantCounts(t *testing.T, i MethodInfo, inFlight, waiting int, ok uint64, failed string) {
	t.Helper()
	sum := uint64(0)
	for _, c := range i.Errors {
		sum += c.Calls
	}
	if i.InFlight != inFlight || i.Waiting != waiting || i.OK != ok || i.Errors.String() != failed || sum != i.Failed {
		t.Errorf("%s: %d in flight, %d waiting, %d ok, %d failed (%v); want %d, %d, %d, %s",
			i.Method, i.InFlight, i.Waiting, i.OK, i.Failed, i.Errors, inFlight, waiting, ok, failed)
	}
}

// Both sides count the ends of calls by outcome, and the bytes.
func TestInspect(t *testing.T) {
	for _, onLoop := range []bool{false, true} {
		t.Run(fmt.Sprintf("OnLoop %v", onLoop), func(t *testing.T) {
			inWorlds(t, func(s *Server) {
				HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
					if string(q) == "taken" {
						return nil, errTaken
					}
					return append(reply, q...), nil
				}, HandlerConfig{OnLoop: onLoop})
			}, func(r *rig) {
				for range 100 {
					if _, err := CallRaw(r.t.Context(), r.c, echo, []byte("12345"), nil); err != nil {
						r.t.Fatal(err)
					}
				}
				for range 3 {
					_, err := CallRaw(r.t.Context(), r.c, echo, []byte("taken"), nil)
					want(r.t, err, errTaken, FateAnswered)
				}
				_, err := CallRaw(r.t.Context(), r.c, nowhere, []byte("x"), nil)
				want(r.t, err, ErrUnknownMethod, FateRefused)
				r.Wait()
				for side, infos := range map[string][]MethodInfo{"server": r.s.Inspect(), "client": r.c.Inspect()} {
					i := methodOf(r.t, infos, "test.Echo")
					wantCounts(r.t, i, 0, 0, 100, "1001 3")
					if n := i.Latency.Count(); n < 70 || n > 160 || i.P99 < i.P50 {
						r.t.Errorf("%s: %d calls have taken %v and %v", side, n, i.P50, i.P99)
					}
					in, out := i.ReceivedBytes, i.SentBytes
					if side == "client" {
						in, out = out, in
					}
					if in != 103*5 || out < 500 || out > 600 {
						r.t.Errorf("%s: %d bytes of requests, %d of answers", side, in, out)
					}
				}
				if u := methodOf(r.t, r.s.Inspect(), unknownMethod); u.Refused.Method != 1 {
					r.t.Errorf("%+v", u.Refused)
				}
				wantCounts(r.t, methodOf(r.t, r.c.Inspect(), "test.Nowhere"), 0, 0, 0, "UNKNOWN_METHOD 1")
				r.c.Close()
				wantCounts(r.t, methodOf(r.t, r.c.Inspect(), "test.Echo"), 0, 0, 100, "1001 3")
				r.Wait()
				wantCounts(r.t, methodOf(r.t, r.s.Inspect(), "test.Echo"), 0, 0, 100, "1001 3")
			})
		})
	}
}

// Calls that wait for a worker, and refused calls, are counted by method.
func TestInspectALoadedServer(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{server: ServerConfig{MaxCalls: 8}, client: ClientConfig{MaxCalls: 8}}, func(s *Server) {
		b = handleBlock(s)
		s.workers.max = 2
	}, func(r *rig) {
		var calls sync.WaitGroup
		for range 9 {
			calls.Go(func() { _, _ = CallRaw(r.t.Context(), r.c, block, []byte("x"), nil) })
		}
		r.Wait()
		wantCounts(r.t, methodOf(r.t, r.s.Inspect(), "test.Block"), 8, 6, 0, "")
		here := methodOf(r.t, r.c.Inspect(), "test.Block")
		wantCounts(r.t, here, 8, 0, 0, "")
		if here.Refused.Limit != 1 {
			r.t.Errorf("%+v", here.Refused)
		}
		time.Sleep(time.Minute)
		close(b.release)
		calls.Wait()
		got := methodOf(r.t, r.s.Inspect(), "test.Block")
		wantCounts(r.t, got, 0, 0, 8, "")
		if got.P50 < 45*time.Second || got.P50 > 75*time.Second {
			r.t.Errorf("p50 is %v", got.P50)
		}
	})
}

// An OnLoop handler that blocks is in flight, and Inspect does not wait for it.
func TestInspectABlockedLoop(t *testing.T) {
	free, inside := make(chan struct{}), make(chan struct{})
	c := echoPair(t, HandlerConfig{OnLoop: true}, func(s *Server) {
		HandleRaw(s, block, func(context.Context, []byte, []byte) ([]byte, error) {
			close(inside)
			<-free
			return nil, nil
		}, HandlerConfig{OnLoop: true})
	})
	done := make(chan error)
	go func() {
		_, err := CallRaw(context.Background(), c.client, block, nil, nil)
		done <- err
	}()
	<-inside
	wantCounts(t, methodOf(t, c.server.Inspect(), "test.Block"), 1, 0, 0, "")
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantCounts(t, methodOf(t, c.server.Inspect(), "test.Block"), 0, 0, 1, "")
}

// Calls whose handlers panic, or end their goroutine, end once.
func TestInspectHandlersThatDoNotReturn(t *testing.T) {
	for _, onLoop := range []bool{false, true} {
		t.Run(fmt.Sprintf("OnLoop %v", onLoop), func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
					if string(q) == "Goexit" {
						runtime.Goexit()
					}
					panic("the handler says no")
				}, HandlerConfig{OnLoop: onLoop})
			}, func(r *rig) {
				for _, q := range []string{"panic", "Goexit", "panic"} {
					if onLoop {
						q = "panic" // a Goexit would end the loop
					}
					r.ExpectPanic(map[string]string{"panic": "the handler says no", "Goexit": "runtime.Goexit was called"}[q])
					_, err := CallRaw(r.t.Context(), r.c, echo, []byte(q), nil)
					want(r.t, err, ErrInternal, FateAnswered)
				}
				r.Wait()
				wantCounts(r.t, methodOf(r.t, r.s.Inspect(), "test.Echo"), 0, 0, 0, "INTERNAL 3")
				wantCounts(r.t, methodOf(r.t, r.c.Inspect(), "test.Echo"), 0, 0, 0, "INTERNAL 3")
			})
		})
	}
}

// A peer that invents names of methods finds one entry for all of them.
func TestInspectInventedMethods(t *testing.T) {
	const names = 1_000_000
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		c := r.rawClient()
		var b []byte
		for i := range names {
			if b = append(b, frame(wire.Header{Type: wire.FrameDeclare, Number: uint16(min(i, wire.MaxMethods))}, fmt.Sprint(i))...); len(b) > 60_000 || i == names-1 {
				c.say(b)
				b = nil
				r.Wait()
			}
		}
		var calls [][]byte
		for i := range 100 {
			calls = append(calls, frame(wire.Header{Type: wire.FrameCall, Number: uint16(i * 100), Call: wire.NewCallID(i, 1)}, ""))
		}
		c.say(bytes.Join(calls, nil))
		r.Wait()
		infos := r.s.Inspect()
		if u := methodOf(r.t, infos, unknownMethod); u.Refused.Method != 100 || len(infos) != 2 || len(r.s.ledger.all) != 1 {
			r.t.Errorf("%d methods, %+v", len(infos), u)
		}
	})
}

// Codes that a peer invents are counted as one, and take no place from those that are known.
func TestInspectInventedCodes(t *testing.T) {
	m := &methodCounts{}
	for code := range 1 << 16 {
		m.countFailure(Code(code))
	}
	var taken uint64
	for _, c := range m.errorCounts() {
		if c.Code != CodeUnknown && sentinelOf(c.Code) == nil {
			t.Errorf("code %d was counted", c.Code)
		}
		if c.Code == 1001 {
			taken = c.Calls
		}
	}
	if all := m.errorCounts(); taken != 1 || all[0].Code != CodeUnknown || all[0].Calls < 1<<16-100 {
		t.Error(all)
	}
}

// Calls that are in flight when their server drains, and those that outlive their connection, are
// counted once, and so are those that come too late.
func TestInspectADrain(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) {
		b = handleBlock(s)
		handleEcho(s)
	}, func(r *rig) {
		raw := r.rawClient()
		raw.say(declareEcho)
		result := make(chan error, 1)
		go func() {
			_, err := CallRaw(r.t.Context(), r.c, block, []byte("x"), nil)
			result <- err
		}()
		<-b.began
		drained := make(chan error, 1)
		go func() { drained <- r.s.Shutdown(r.within(time.Minute)) }()
		r.Wait()
		raw.say(frame(wire.Header{Type: wire.FrameCall}, ""))
		r.Wait()
		_, err := CallRaw(r.t.Context(), r.c, echo, []byte("x"), nil)
		want(r.t, err, ErrDraining, FateNotSent)
		there := r.s.Inspect()
		wantCounts(r.t, methodOf(r.t, there, "test.Block"), 1, 0, 0, "")
		if e := methodOf(r.t, there, "test.Echo"); e.Refused.Draining != 1 {
			r.t.Errorf("%+v", e.Refused)
		}
		if e := methodOf(r.t, r.c.Inspect(), "test.Echo"); e.Refused.Draining != 1 {
			r.t.Errorf("%+v", e.Refused)
		}
		close(b.release)
		if err := errors.Join(<-result, <-drained); err != nil {
			r.t.Error(err)
		}
		r.Wait()
		wantCounts(r.t, methodOf(r.t, r.s.Inspect(), "test.Block"), 0, 0, 1, "")
	})
}

// A handler may return when its connection has long gone.
func TestInspectAHandlerThatOutlivesItsConnection(t *testing.T) {
	var free chan struct{}
	inWorld(t, rigConfig{}, func(s *Server) {
		free = make(chan struct{})
		HandleRaw(s, block, func(context.Context, []byte, []byte) ([]byte, error) {
			<-free
			return nil, errTaken
		})
	}, func(r *rig) {
		go func() { _, _ = CallRaw(r.t.Context(), r.c, block, nil, nil) }()
		r.Wait()
		r.c.Close()
		r.Wait()
		wantCounts(r.t, methodOf(r.t, r.s.Inspect(), "test.Block"), 1, 0, 0, "")
		wantCounts(r.t, methodOf(r.t, r.c.Inspect(), "test.Block"), 0, 0, 0, "CLOSED 1")
		close(free)
		r.Wait()
		wantCounts(r.t, methodOf(r.t, r.s.Inspect(), "test.Block"), 0, 0, 0, "1001 1")
	})
}

// Requests whose callers have gone before it was their turn are late, and the server never sees
// them.
func TestInspectLateRequests(t *testing.T) {
	const calls = 500
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		r.Delay(50 * time.Millisecond)
		var callers sync.WaitGroup
		for range calls {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Millisecond)
				defer cancel()
				_, _ = CallRaw(ctx, r.c, echo, make([]byte, 60<<10), nil)
			})
		}
		callers.Wait()
		r.Advance(time.Minute)
		here, there := methodOf(r.t, r.c.Inspect(), "test.Echo"), methodOf(r.t, r.s.Inspect(), "test.Echo")
		wantCounts(r.t, here, 0, 0, 0, fmt.Sprintf("DEADLINE_EXCEEDED %d", calls))
		if here.Late == 0 || here.Late+there.Started != calls {
			r.t.Errorf("%d were late, and %d have come", here.Late, there.Started)
		}
	})
}

// Methods beyond those that a connection has numbers for share an entry, which outlives
// connections.
func TestInspectManyHandlers(t *testing.T) {
	var last RawMethod
	inWorld(t, rigConfig{}, func(s *Server) {
		for i := range wire.MaxMethods + 2 {
			last = NewRawMethod(fmt.Sprint(i))
			HandleRaw(s, last, func(_ context.Context, _, reply []byte) ([]byte, error) { return reply, nil })
		}
	}, func(r *rig) {
		for n := range uint64(3) {
			c := r.dial()
			if _, err := CallRaw(r.t.Context(), c, last, nil, nil); err != nil {
				r.t.Fatal(err)
			}
			wantCounts(r.t, methodOf(r.t, r.s.Inspect(), unknownMethod), 0, 0, n+1, "")
			c.Close()
			r.Wait()
			wantCounts(r.t, methodOf(r.t, r.s.Inspect(), unknownMethod), 0, 0, n+1, "")
		}
	})
}

// A program may have made a method more than once: it has one entry.
func TestInspectMethodsOfOneName(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		for range 3 {
			if _, err := CallRaw(r.t.Context(), r.c, NewRawMethod("test.Echo"), nil, nil); err != nil {
				r.t.Fatal(err)
			}
		}
		if infos := r.c.Inspect(); len(infos) != 1 {
			r.t.Errorf("%d entries", len(infos))
		}
		wantCounts(r.t, methodOf(r.t, r.c.Inspect(), "test.Echo"), 0, 0, 3, "")
	})
}

// Streams count their items.
func TestInspectStreams(t *testing.T) {
	inWorld(t, rigConfig{}, func(s *Server) { handleCount(s) }, func(r *rig) {
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(1000))
		if err != nil {
			r.t.Fatal(err)
		}
		for range in.All() {
		}
		if in, err = Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1)); err != nil {
			r.t.Fatal(err)
		}
		r.Wait()
		in.Close()
		r.Wait()
		here, there := methodOf(r.t, r.c.Inspect(), "test.Count"), methodOf(r.t, r.s.Inspect(), "test.Count")
		wantCounts(r.t, here, 0, 0, 1, "CANCELED 1")
		wantCounts(r.t, there, 0, 0, 1, "CANCELED 1")
		if here.Items < 1000 || there.Items < here.Items || here.ReceivedBytes == 0 || there.SentBytes < here.ReceivedBytes || !there.Stream {
			r.t.Errorf("%d items of %d, %d bytes of %d", here.Items, there.Items, here.ReceivedBytes, there.SentBytes)
		}
	})
}

// Repetitions, and calls that wait for a connection, are seen.
func TestInspectRepetitions(t *testing.T) {
	cfg := rigConfig{server: ServerConfig{MaxCallsInAll: 1}, client: ClientConfig{Retry: Retry{Attempts: 3}}}
	var b *blocking
	inWorld(t, cfg, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		go func() { _, _ = CallRaw(r.t.Context(), r.c, block, nil, nil) }()
		<-b.began
		_, err := CallRaw(r.t.Context(), r.c, block, nil, nil)
		want(r.t, err, ErrOverloaded, FateRefused)
		i := methodOf(r.t, r.c.Inspect(), "test.Block")
		wantCounts(r.t, i, 1, 0, 0, "OVERLOADED 3")
		if i.Repeated != 2 {
			r.t.Errorf("%d repetitions", i.Repeated)
		}
		if there := methodOf(r.t, r.s.Inspect(), "test.Block"); there.Refused.Limit != 3 {
			r.t.Errorf("%+v", there.Refused)
		}
		close(b.release)
	})
}

// A call that waits for a connection is seen, and is not in flight.
func TestInspectWaiting(t *testing.T) {
	inWorld(t, rigConfig{client: ClientConfig{WaitForReady: true}}, handleEcho, func(r *rig) {
		r.s.Close()
		r.Wait()
		ctx, cancel := context.WithCancel(r.t.Context())
		done := make(chan struct{})
		go func() {
			_, _ = CallRaw(ctx, r.c, echo, nil, nil)
			close(done)
		}()
		r.Wait()
		wantCounts(r.t, methodOf(r.t, r.c.Inspect(), "test.Echo"), 0, 1, 0, "")
		cancel()
		<-done
		i := methodOf(r.t, r.c.Inspect(), "test.Echo")
		wantCounts(r.t, i, 0, 0, 0, "")
		if i.Refused.Context != 1 {
			r.t.Errorf("%+v", i.Refused)
		}
	})
}

// A connection that ends does not wait for a reader of the counters, and its counts are in the next
// reading.
func TestInspectDelaysNobody(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		if _, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil {
			r.t.Fatal(err)
		}
		r.s.ledger.mu.Lock()
		r.c.ledger.mu.Lock()
		r.c.Close()
		r.Wait()
		if n := len(r.s.connections()); n != 0 {
			r.t.Errorf("%d connections", n)
		}
		r.s.ledger.mu.Unlock()
		r.c.ledger.mu.Unlock()
		for range 2 {
			wantCounts(r.t, methodOf(r.t, r.s.Inspect(), "test.Echo"), 0, 0, 1, "")
			wantCounts(r.t, methodOf(r.t, r.c.Inspect(), "test.Echo"), 0, 0, 1, "")
		}
	})
}

// No counter shrinks, and nothing is counted twice, while connections come and go.
func TestInspectGrows(t *testing.T) {
	p := echoPair(t, HandlerConfig{})
	stop := make(chan struct{})
	var reader sync.WaitGroup
	for side, inspect := range map[string]func() []MethodInfo{"server": p.server.Inspect, "client": p.client.Inspect} {
		reader.Go(func() {
			var before MethodInfo
			for {
				for _, i := range inspect() {
					if i.OK < before.OK || i.Failed < before.Failed || i.SentBytes < before.SentBytes || i.InFlight < 0 || i.Waiting < 0 {
						t.Errorf("%s: %+v after %+v", side, i, before)
					}
					before = i
				}
				// On one processor, each call would wait for the end of a time slice.
				runtime.Gosched()
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	calls := uint64(0)
	for range 20 {
		c, err := Dial(context.Background(), p.here, p.at.String())
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if _, err := CallRaw(context.Background(), c, benchEcho, []byte("x"), nil); err != nil {
				t.Fatal(err)
			}
			calls++
		}
		c.Close()
	}
	close(stop)
	reader.Wait()
	if i := methodOf(t, p.server.Inspect(), "bench.Echo"); i.OK != calls || i.ReceivedBytes != calls {
		t.Errorf("%d calls are counted as %d", calls, i.OK)
	}
}

// BenchmarkCounting measures the cost of both sides' counters per call, without the rest of the
// call.
func BenchmarkCounting(b *testing.B) {
	m := newMethod("bench.Counting", unary, bytesCodec, bytesCodec)
	h := &handler{m: m, counts: newLedger().countsOf(m)}
	b.Run("client", func(b *testing.B) {
		l := &table{ledger: newLedger(), beyond: new(atomic.Int64)}
		l.out.mu.Lock()
		l.numberLocked(m)
		c := &clientCall{m: m}
		b.ReportAllocs()
		for b.Loop() {
			l.beginLocked(c)
			l.declaredLocked(m).sent += 64
			l.countLocked(c, 0)
			l.declaredLocked(m).received += 64
		}
	})
	b.Run("server", func(b *testing.B) {
		c := &serverConn{s: &Server{}}
		c.addTally(h)
		call := &serverCall{h: h, c: c}
		o := &outcome{}
		b.ReportAllocs()
		for b.Loop() {
			c.came = time.Time{}
			c.begunLocked(call)
			h.counts.taken++
			call.stop(h.counts)
			c.s.countEnd(call, o, c.endedLocked(call, 0, 64))
		}
	})
}
