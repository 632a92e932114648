package metrics

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

const (
	started  = "rdmactor_rpc_started_calls_total"
	ended    = "rdmactor_rpc_ended_calls_total"
	running  = "rdmactor_rpc_running_calls"
	refused  = "rdmactor_rpc_refused_calls_total"
	inFlight = "rdmactor_rpc_in_flight"
)

// fake is a caller with given counts.
type fake struct {
	inFlight int
	infos    []rpc.MethodInfo
}

func (f *fake) InFlight() int { return f.inFlight }

func (f *fake) Inspect() []rpc.MethodInfo { return append([]rpc.MethodInfo(nil), f.infos...) }

// ok adds successful calls of each method.
func (f *fake) ok(calls uint64, methods ...string) *fake {
	for _, m := range methods {
		f.infos = append(f.infos, rpc.MethodInfo{Method: m, Started: calls, OK: calls})
	}
	return f
}

// fakes returns a changeable list of callers, and a function that reads them as one side.
func fakes(most int, all ...*fake) (*[]*fake, func() []Sample) {
	list := &all
	s := newSide("client", func() []*fake { return *list }, keptNames(most, labelOther))
	return list, func() []Sample { return s.readCalls(nil) }
}

// Methods beyond the bound are summed. A label is never withdrawn, whatever order the methods are
// seen in.
func TestManyMethods(t *testing.T) {
	const most, count = 4, 10
	f := new(fake)
	for i := range count {
		f.ok(1, "m"+strconv.Itoa(i))
	}
	list, read := fakes(most, f)
	before := read()
	want(t, before, count-most, started, "client", "other")
	want(t, before, count-most, ended, "client", "other", "OK")
	want(t, before, 1, started, "client", "m0")
	for range 100 {
		rand.Shuffle(count, func(i, j int) { f.infos[i], f.infos[j] = f.infos[j], f.infos[i] })
		*list = []*fake{new(fake).ok(1, "m9", "new"), f}[rand.IntN(2):]
		now := read()
		stayed(t, before, now)
		before = now
	}
	*list = nil
	stayed(t, before, read())
	*list = []*fake{new(fake).ok(1, "newer", "m9", "m0")}
	got := read()
	stayed(t, before, got)
	want(t, got, 2, started, "client", "m0")
	if _, ok := value(got, started, "client", "newer"); ok {
		t.Error("a label was given twice")
	}
}

// Methods with hostile names, and names that a program makes up, leave nothing behind.
func TestInventedMethods(t *testing.T) {
	f := new(fake)
	names := keptNames(8, labelOther)
	s := newSide("server", func() []*fake { return []*fake{f} }, names)
	for i := range 1000 {
		f.infos = nil
		s.readCalls(nil)
		f.ok(1, append(hostile, strconv.Itoa(i)+strings.Repeat("\xff", i))...)
		s.readCalls(nil)
	}
	f.infos = nil
	s.readCalls(nil)
	if len(names.given) > 8 || len(s.gone) > 9 || len(s.started) > 9 || len(s.seen) != 1 {
		t.Errorf("%d names, %d and %d sums, %d servers", len(names.given), len(s.gone), len(s.started), len(s.seen))
	}
}

// The counts of a client that has gone stay in the sums, including those after its last reading. It
// is read until its last call has ended.
func TestAClientGoes(t *testing.T) {
	a, b := new(fake).ok(5, "m"), new(fake).ok(7, "m")
	list, read := fakes(4, a, nil, b, b)
	want(t, read(), 12, ended, "client", "m", "OK")

	a.infos[0].InFlight, a.infos[0].Started, a.inFlight = 1, 6, 1
	*list = []*fake{b}
	got := read()
	want(t, got, 12, ended, "client", "m", "OK")
	want(t, got, 13, started, "client", "m")
	want(t, got, 1, running, "client", "m")
	want(t, got, 1, inFlight, "client")

	a.infos[0].InFlight, a.inFlight = 0, 0
	a.infos[0].Failed, a.infos[0].Errors = 1, rpc.CodeCounts{{Code: rpc.CodeClosed, Calls: 1}}
	for range 3 {
		got = read()
		want(t, got, 12, ended, "client", "m", "OK")
		want(t, got, 1, ended, "client", "m", "CLOSED")
		want(t, got, 0, running, "client", "m")
	}
	*list = nil
	read()
	if got = read(); len(got) == 0 {
		t.Error("the sums have gone")
	}
	want(t, got, 13, started, "client", "m")
	want(t, got, 0, inFlight, "client")
}

// Ended clients are not kept, however many there were.
func TestManyClientsGo(t *testing.T) {
	var list []*fake
	s := newSide("client", func() []*fake { return list }, keptNames(4, labelOther))
	for range 1000 {
		list = []*fake{new(fake).ok(1, "m")}
		s.readCalls(nil)
	}
	if len(s.seen) != 1 || cap(s.seen) > 8 {
		t.Errorf("%d clients of %d", len(s.seen), cap(s.seen))
	}
	want(t, s.readCalls(nil), 1000, started, "client", "m")
}

// A request that is refused after it was in flight makes no counter go down.
func TestStartedNeverShrinks(t *testing.T) {
	f := new(fake).ok(5, "m")
	f.infos[0].Started, f.infos[0].InFlight = 6, 1
	_, read := fakes(4, f)
	before := read()
	f.infos[0].Started, f.infos[0].InFlight = 5, 0
	stayed(t, before, read())
}

// A refusal has the reason that package rpc has counted.
func TestReasons(t *testing.T) {
	f := new(fake).ok(0, "m")
	f.infos[0].Refused = rpc.RefusedCalls{Limit: 1, Memory: 2, Draining: 3, Connection: 4, Method: 5, Message: 6, Context: 7}
	_, read := fakes(4, f, &fake{infos: f.infos})
	got := read()
	for i, reason := range []string{"limit", "memory", "draining", "connection", "method", "message", "context"} {
		want(t, got, 2*float64(i+1), refused, "client", "m", reason)
	}
}

var echo, fails = rpc.NewRawMethod("test.Echo"), rpc.NewRawMethod("test.Fails")

// served returns a listening server, and a function that dials it.
func served(t *testing.T) (*rpc.Server, func() *rpc.Client) {
	t.Helper()
	_, rt := open(t, "server")
	_, there := open(t, "client")
	s := rpc.NewServer(rt)
	rpc.HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil })
	rpc.HandleRaw(s, fails, func(context.Context, []byte, []byte) ([]byte, error) { return nil, errors.New("no") }, rpc.HandlerConfig{OnLoop: true})
	at, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, func() *rpc.Client {
		c, err := rpc.Dial(context.Background(), there, at.String())
		if err != nil {
			t.Error(err)
		}
		return c
	}
}

// Servers and clients are read. While clients come and go, no sum goes down, and no count is lost
// of those that a reading has seen.
func TestCalls(t *testing.T) {
	server, dial := served(t)
	var mu sync.Mutex
	var clients []*rpc.Client
	s := New(Config{
		Within:  time.Minute,
		Servers: func() []*rpc.Server { return []*rpc.Server{server} },
		Clients: func() []*rpc.Client {
			mu.Lock()
			defer mu.Unlock()
			return append([]*rpc.Client(nil), clients...)
		},
	})
	ctx, done := context.Background(), make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			c := dial()
			mu.Lock()
			clients = []*rpc.Client{c}
			mu.Unlock()
			s.Read(ctx) // may share a reading that began earlier
			s.Read(ctx)
			for range 50 {
				_, err := rpc.CallRaw(ctx, c, echo, []byte("x"), nil)
				_, no := rpc.CallRaw(ctx, c, fails, nil, nil)
				if err != nil || no == nil {
					t.Error(err, no)
				}
			}
			c.Close()
		}
	}()
	var before []Sample
	for more := true; more; {
		select {
		case <-done:
			more = false
		default:
		}
		now := s.ReadCalls(ctx)
		stayed(t, before, now)
		before = now
		// On one processor, each call would wait for the end of a time slice.
		runtime.Gosched()
	}
	for _, side := range []string{"server", "client"} {
		want(t, before, 1000, ended, side, "test.Echo", "OK")
		want(t, before, 1000, ended, side, "test.Fails", "UNKNOWN")
		want(t, before, 1000, started, side, "test.Fails")
		want(t, before, 0, running, side, "test.Fails")
		h := histogramOf(before, side, "test.Echo")
		if h == nil || h.Count() != 1000 || h.Sum() == 0 { // each connection times its first 64
			t.Errorf("%s: the calls have taken %v", side, h)
		}
	}
}

// stayed checks that no counter has gone down (grown) and no sample is missing.
func stayed(t *testing.T, before, now []Sample) {
	t.Helper()
	grown(t, before, now)
	for _, s := range before {
		if _, ok := value(now, s.Name(), s.Values...); !ok {
			t.Errorf("%s%q has gone", s.Name(), s.Values)
		}
		if s.Kind != Histogram {
			continue
		}
		if h := histogramOf(now, s.Values...); h == nil || h.Count() < s.Histogram.Count() || h.Sum() < s.Histogram.Sum() {
			t.Errorf("%s%q = %v, and %v before", s.Name(), s.Values, h, s.Histogram)
		}
	}
}

// histogramOf finds a histogram; nil: none.
func histogramOf(samples []Sample, labels ...string) *rpc.Histogram {
	for _, s := range samples {
		if s.Kind == Histogram && fmt.Sprint(s.Values) == fmt.Sprint(labels) {
			return s.Histogram
		}
	}
	return nil
}
