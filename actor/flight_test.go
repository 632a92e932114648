package actor

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// flights gets dumps.
type flights chan Flight

// next returns the next one, whose reason begins with why and whose records contain what.
func (f flights) next(w *world, why, what string) Flight {
	w.Helper()
	select {
	case d := <-f:
		if !strings.HasPrefix(d.Why, why) || !strings.Contains(d.String(), what) || d.Loop != "rdma-0" {
			w.Errorf("want %q with %q in it, got\n%v", why, what, d)
		}
		return d
	case <-time.After(time.Minute):
		w.Fatalf("no dump: %s", why)
		return Flight{}
	}
}

func (f flights) none(w *world) {
	w.Helper()
	settle()
	select {
	case d := <-f:
		w.Errorf("a dump that nobody needs: %v", d)
	default:
	}
}

// safeBuffer is a bytes.Buffer for many goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// kindsOf returns the records of an identifier, without the times.
func kindsOf(fs []Flight, id Handle) (all []string) {
	for _, f := range fs {
		for _, r := range f.Records {
			if Handle(r.ID) == id {
				all = append(all, r.Kind.String()+" "+r.What)
			}
		}
	}
	return all
}

// The recorder has the life of an identifier, and no messages; a blocked loop is no hindrance.
func TestFlightOnDemand(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect(IDConfig{Memory: 100})
		id := w.info(w.rt, p.c).ID
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		p.client.send(p.c, &Write{Key: key, Memory: memory(p.client, p.c, 100, rw), Length: 16})
		next[*WriteDone](p.client)
		for range 100 {
			m := NewSend([]byte("x"))
			m.Notify = true
			p.client.send(p.c, m)
			next[*Sent](p.client)
			next[*Received](p.server)
		}
		w.block(w.rt.loops[0])
		var all []Flight
		if took := elapsed(func() { all = w.rt.Flight() }); took != 0 {
			w.Errorf("Flight took %v", took)
		}
		got := strings.Join(kindsOf(all, id), "\n")
		want := strings.Join([]string{
			"command dial", "transition idle -> addr-query", "transition addr-query -> addr-resolved",
			"transition addr-resolved -> route-query", "transition route-query -> route-resolved",
			"transition route-resolved -> connecting", "transition connecting -> connected", "event Established",
			"command alloc memory", "event MemoryAllocated",
		}, "\n")
		if got != want {
			w.Errorf("recorded\n%s\nwant\n%s", got, want)
		}
		if _, err := json.Marshal(all); err != nil || all[0].Why != "asked for" || all[0].Before != 0 {
			w.Errorf("%+v, %v", all[0], err)
		}
	})
}

// An actor that panics on the loop has the recorder dumped; one off the loops does not.
func TestFlightOfAPanic(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("in Receive") }} {
		t.Run(name, func(t *testing.T) {
			var f flights
			inWorld(t, states.IWARP, func(w *world) {
				f = make(flights, 10)
				p := w.connect()
				react := func(ctx actor.Context) {
					if ctx.Message() == "fail" {
						fail()
					}
				}
				off := newProbe(w, w.sys, w.rt.OffLoop(), nil)
				if name == "panic" {
					off.reactWith(react)
					w.sys.Root.Send(off.pid, "fail")
				}
				f.none(w)
				p.client.reactWith(react)
				w.sys.Root.Send(p.client.pid, "fail")
				d := f.next(w, "panic of actor "+p.client.pid.Id, "connecting -> connected")
				if last := d.Records[len(d.Records)-1]; last.Kind != FlightPanic {
					w.Errorf("the last record: %v", last)
				}
				_ = w.rt.loops[0].el.Post(func() { panic("in a callback") }) // less than 10 s later
				f.none(w)
				time.Sleep(flightEvery)
				_ = w.rt.loops[0].el.Post(func() { panic("in a callback") })
				f.next(w, "panic of post ", "panicked")
			}, Config{Flight: FlightConfig{Dump: func(d Flight) { f <- d }}})
		})
	}
}

// A stall is dumped while it lasts, and OnStall is called nevertheless.
func TestFlightOfAStall(t *testing.T) {
	var f flights
	var stalls chan eventloop.Stall
	inWorld(t, states.IWARP, func(w *world) {
		f, stalls = make(flights, 10), make(chan eventloop.Stall, 10)
		w.connect()
		release := w.block(w.rt.loops[0])
		f.next(w, "stall of 1", "stall      stalled")
		if s := <-stalls; s.Holder.Kind != "post" {
			w.Errorf("%+v", s)
		}
		release()
	}, Config{
		Flight: FlightConfig{Dump: func(d Flight) { f <- d }},
		Loops:  []eventloop.Config{{OnStall: func(s eventloop.Stall) { stalls <- s }}},
	})
}

// A peer that breaks the protocol has it dumped, however often it does so, once in 10 s.
func TestFlightOfAProtocolViolation(t *testing.T) {
	var f flights
	inWorld(t, states.IWARP, func(w *world) {
		f = make(flights, 10)
		lie := func() {
			p := w.connect()
			w.onLoop(w.rt, func(l *loop) { w.conn(l, p.c).ID.Context.(*ident).BreakOff(&wire.ProtocolError{What: "a lie"}) })
			until[*Closed](p.client)
			until[*Closed](p.server)
			p.server.send(p.listener, &Close{})
			until[*Closed](p.server)
		}
		lie()
		f.next(w, "protocol violation of ", "broken off EPROTO")
		for range 5 {
			lie()
		}
		f.none(w)
	}, Config{Flight: FlightConfig{Dump: func(d Flight) { f <- d }}})
}

// Without a Dump the last records are logged, and a logger that blocks stops no loop.
func TestFlightIsLogged(t *testing.T) {
	var log safeBuffer
	inWorld(t, states.IWARP, func(w *world) {
		w.connect()
		release := w.block(w.rt.loops[0])
		time.Sleep(2 * time.Second)
		release()
		if s := log.String(); !contains(s, "rdma: flight recorder: stall") || !contains(s, "connecting -> connected") || !contains(s, "loop=rdma-0") {
			w.Errorf("the log does not have it: %s", s)
		}
	}, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
}

// A Dump that does not return costs its dump; one that blocks holds up neither a loop nor
// Shutdown for long.
func TestFlightDumpThatFails(t *testing.T) {
	for name, fail := range map[string]func(){
		"panic": func() { panic("in Dump") }, "exit": runtime.Goexit, "block": func() { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			called := 0
			inWorld(t, states.IWARP, func(w *world) {
				p := w.connect()
				_ = w.rt.loops[0].el.Post(func() { panic("in a callback") })
				settle()
				p.client.send(p.c, NewSend([]byte("x")))
				next[*Received](p.server)
				took := elapsed(func() {
					err := w.rt.Shutdown(context.Background())
					if (err != nil) != (name == "block") {
						w.Errorf("Shutdown: %v", err)
					}
				})
				if took > 20*time.Second || called != 1 {
					w.Errorf("Shutdown took %v, and Dump was called %d times", took, called)
				}
				time.Sleep(2 * time.Hour)
				if fs := w.rt.Flight(); len(fs[0].Records) == 0 {
					w.Error("after Shutdown nothing is left of what was recorded")
				}
			}, Config{Flight: FlightConfig{Dump: func(Flight) { called++; fail() }}})
		})
	}
}

// While a Dump does not return, at most one dump for each reason waits: they are large.
func TestFlightDumpsThatWait(t *testing.T) {
	var blocked chan struct{}
	var calls atomic.Int32
	inWorld(t, states.IWARP, func(w *world) {
		blocked = make(chan struct{})
		fail := func() {
			_ = w.rt.loops[0].el.Post(func() { panic("in a callback") })
			time.Sleep(flightEvery)
		}
		for range 20 {
			fail()
		}
		close(blocked)
		settle()
		fail()
		if n := calls.Load(); n != 3 {
			w.Errorf("Dump was called %d times, want 3", n)
		}
	}, Config{Flight: FlightConfig{Dump: func(Flight) { calls.Add(1); <-blocked }}})
}

// With a negative number of records there is no recorder, and with a small one little is kept.
func TestFlightRecords(t *testing.T) {
	for records, want := range map[int]int{-1: 0, 3: 3} {
		inWorld(t, states.IWARP, func(w *world) {
			w.connect()
			_ = w.rt.loops[0].el.Post(func() { panic("in a callback") })
			settle()
			if fs := w.rt.Flight(); len(fs) != 1 || len(fs[0].Records) != want || (fs[0].Before > 0) != (want > 0) {
				w.Errorf("%d records: %+v", records, fs)
			}
		}, Config{Flight: FlightConfig{Records: records}})
	}
}

// Requests that the runtime refuses are recorded with the reason.
func TestFlightOfARefusal(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		w.listen(w.farProbe(), IDConfig{RefuseForeign: true})
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{Raw: true})
		p.send(id, &Dial{Addr: there + ":7471"})
		until[*Rejected](p)
		if s := w.far.Flight()[0].String(); !contains(s, "refusal    a foreign peer") {
			w.Errorf("recorded\n%s", s)
		}
	})
}
