package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/states"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far above the duration of any step here.
const patience = 20 * time.Second

// rig is a device and an address of it.
type rig struct {
	driver cmid.Driver
	at     string
	fabric *cmidtest.Fabric // nil: not a twin
}

func twin(cfg cmidtest.Config) rig {
	f := cmidtest.NewFabric(cfg)
	f.AddDevice("mem0", "10.0.0.1/24")
	return rig{f.Driver(), "10.0.0.1:0", f}
}

// rigs returns the embedded device, and the twin as InfiniBand and as the kernel's iWARP, where
// receives must be posted beforehand.
func rigs() map[string]rig {
	return map[string]rig{
		"iwarp":      {driver: iwarp.New(), at: "127.0.0.1:0"},
		"infiniband": twin(cmidtest.Config{Reserved: true}),
		"siw":        twin(cmidtest.Config{Flavor: states.IWARP, Reserved: true}),
	}
}

func (r rig) config(t *testing.T) Config {
	return Config{Driver: r.driver, Timeout: patience, Complain: func(err error) { t.Errorf("the server complains: %v", err) }}
}

// serve starts a server that must have served want tests at its end.
func (r rig) serve(t *testing.T, cfg Config, want int) *Server {
	t.Helper()
	s, err := Listen(cfg, cmid.MustAddr(r.at))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n, err := s.Close(); n != want || err != nil {
			t.Errorf("the server has served %d tests, and closes with %v; want %d", n, err, want)
		}
		if r.fabric != nil && len(r.fabric.Left()) > 0 {
			t.Errorf("not given back: %v", r.fabric.Left())
		}
	})
	return s
}

func (r rig) open(t *testing.T, cfg Config) *Client {
	t.Helper()
	cl, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return cl
}

// TestEveryTest: each operation, both kinds, inline and not, more than a batch and less, on each
// device.
func TestEveryTest(t *testing.T) {
	for name, r := range rigs() {
		t.Run(name, func(t *testing.T) {
			var tests []Test
			for _, op := range ops[1:] {
				for _, size := range []int{1, 64, 257, 70_000} {
					tests = append(tests, Test{op, Latency, size, 1}, Test{op, Bandwidth, size, 1}, Test{op, Bandwidth, size, 16})
				}
			}
			s := r.serve(t, r.config(t), len(tests))
			cl := r.open(t, r.config(t))
			for _, test := range tests {
				const count = 50
				res, err := cl.Run(t.Context(), Plan{Test: test, Peer: s.Addr(), Count: count, OwnMemory: test.Depth > 1})
				if err != nil {
					t.Fatalf("%+v: %v", test, err)
				}
				check(t, test, res, count)
				if res.Count > count+test.Depth {
					t.Errorf("%+v: %d messages were measured, %d were asked for", test, res.Count, count)
				}
			}
		})
	}
}

func check(t *testing.T, test Test, res Result, count int) {
	t.Helper()
	if res.Op != test.Op || res.Kind != test.Kind || res.Size != test.Size || res.Count < count {
		t.Errorf("%+v: the result is of %s, %s, %d bytes, %d messages", test, res.Op, res.Kind, res.Size, res.Count)
	}
	if test.Kind == Bandwidth {
		if res.Rate == nil || res.Times != nil || res.Rate.MsgPerSec <= 0 || res.Rate.MiBPerS <= 0 {
			t.Errorf("%+v: %+v is no bandwidth", test, res)
		}
		return
	}
	x := res.Times
	if x == nil || res.Rate != nil || x.MinUS <= 0 || x.P50US < x.MinUS || x.P90US < x.P50US || x.P99US < x.P90US || x.P999US < x.P99US ||
		x.MaxUS < x.P999US*0.999 {
		t.Fatalf("%+v: %+v is no distribution", test, x)
	}
	if of := map[Op]string{Send: "half round trip", Write: "half round trip", Read: "round trip"}[test.Op]; x.Of != of {
		t.Errorf("%+v: it is of a %s, want %s", test, x.Of, of)
	}
}

// TestWaits: every mode, and a run that ends after its duration.
func TestWaits(t *testing.T) {
	r := rigs()["iwarp"]
	for _, wait := range []eventloop.WaitMode{eventloop.Block, eventloop.Spin, eventloop.Busy} {
		cfg := r.config(t)
		cfg.Wait = wait
		s := r.serve(t, cfg, 2)
		cl := r.open(t, cfg)
		for _, test := range []Test{{Send, Latency, 64, 1}, {Write, Bandwidth, 64, 8}} {
			res, err := cl.Run(t.Context(), Plan{Test: test, Peer: s.Addr(), WarmUp: time.Millisecond, Duration: 10 * time.Millisecond})
			if err != nil {
				t.Fatalf("%v: %v", wait, err)
			}
			check(t, test, res, 1)
			if test.Kind == Bandwidth && res.Rate.Seconds < 0.01 {
				t.Errorf("%v: it measured %vs, want 10 ms or more", wait, res.Rate.Seconds)
			}
		}
	}
}

// TestManyClients: concurrent clients, and one after another that has failed.
func TestManyClients(t *testing.T) {
	r := rigs()["iwarp"]
	const clients = 8
	s := r.serve(t, r.config(t), clients)
	results := make(chan error, clients)
	for i := range clients {
		cl := r.open(t, r.config(t))
		go func() {
			test := Test{ops[1+i%3], kinds[1+i%2], 1 + i*5000, 1}
			_, err := cl.Run(t.Context(), Plan{Test: test, Peer: s.Addr(), Count: 200})
			results <- err
		}()
	}
	for range clients {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestRefused: a server gives the reason for a refusal.
func TestRefused(t *testing.T) {
	for name, r := range rigs() {
		t.Run(name, func(t *testing.T) {
			var complaints []string
			cfg := r.config(t)
			cfg.Complain = func(err error) { complaints = append(complaints, err.Error()) }
			s := r.serve(t, cfg, 0)
			s.memory = serverMemory // as if other connections used it; none exists yet
			cl := r.open(t, r.config(t))
			_, err := cl.Run(t.Context(), Plan{Test: Test{Send, Latency, 64, 1}, Peer: s.Addr(), Count: 1})
			const want = "the server says: the server's other clients have its memory"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want an error that says %q", err, want)
			}
			_ = s.h.runOnLoop(func() error { return nil }) // its loop has reported by then
			if len(complaints) != 1 || !strings.Contains(complaints[0], "client ") {
				t.Errorf("the server complains %q, want of the client, once", complaints)
			}
		})
	}
}

// TestNobody: the errno of a server that does not exist.
func TestNobody(t *testing.T) {
	r := rigs()["iwarp"]
	cl := r.open(t, r.config(t))
	_, err := cl.Run(t.Context(), Plan{Test: Test{Send, Latency, 64, 1}, Peer: cmid.MustAddr("127.0.0.1:1"), Count: 1})
	if err == nil || !strings.Contains(err.Error(), "connecting") || !strings.Contains(err.Error(), "ECONNREFUSED") {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestSilence: a peer that never answers costs the time limit, not the program.
func TestSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := rigs()["iwarp"].config(t)
	cfg.Timeout = 50 * time.Millisecond
	cl := rigs()["iwarp"].open(t, cfg)
	_, err = cl.Run(t.Context(), Plan{Test: Test{Send, Latency, 64, 1}, Peer: cmid.MustAddr(l.Addr().String()), Count: 1})
	if err == nil || !strings.Contains(err.Error(), "connecting: no progress for 50ms") {
		t.Errorf("a silent peer: %v", err)
	}
}

// TestServerEnds: both sides end, whichever is asked to end first.
func TestServerEnds(t *testing.T) {
	for name, r := range rigs() {
		for _, test := range []Test{{Send, Latency, 64, 1}, {Write, Bandwidth, 64, 16}, {Read, Bandwidth, 64, 16}} {
			t.Run(fmt.Sprintf("%s/%s", name, test.Op), func(t *testing.T) {
				s, err := Listen(r.config(t), cmid.MustAddr(r.at))
				if err != nil {
					t.Fatal(err)
				}
				cl := r.open(t, r.config(t))
				ended := make(chan error, 1)
				go func() {
					_, err := cl.Run(t.Context(), Plan{Test: test, Peer: s.Addr(), Duration: time.Hour})
					ended <- err
				}()
				for connected := false; !connected; {
					_ = s.h.runOnLoop(func() error {
						for c := range s.conns {
							connected = c.moved > 0 || c.test.Op == Read && c.ID.State() == states.Connected
						}
						return nil
					})
				}
				if _, err := s.Close(); err != nil {
					t.Errorf("closing the server: %v", err)
				}
				if err := <-ended; err == nil || !strings.Contains(err.Error(), "the peer has gone") {
					t.Errorf("the client's test ended with %v", err)
				}
			})
		}
	}
}

// TestInterrupted: ctx ends a test before anything was measured, and the server is not affected.
func TestInterrupted(t *testing.T) {
	for name, r := range rigs() {
		t.Run(name, func(t *testing.T) {
			s := r.serve(t, r.config(t), 1)
			cl := r.open(t, r.config(t))
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				for connected := false; !connected; {
					_ = s.h.runOnLoop(func() error {
						for c := range s.conns {
							connected = c.moved > 0
						}
						return nil
					})
				}
				cancel()
			}()
			_, err := cl.Run(ctx, Plan{Test: Test{Send, Bandwidth, 64, 16}, Peer: s.Addr(), WarmUp: time.Hour, Duration: time.Hour})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the test ended with %v, want that it was cancelled", err)
			}
		})
	}
}

// TestInterruptedMeasurement: a test that ctx ends returns the results so far, for every operation,
// and the server is not affected.
func TestInterruptedMeasurement(t *testing.T) {
	for name, dev := range rigs() {
		t.Run(name, func(t *testing.T) {
			s := dev.serve(t, dev.config(t), 2*len(ops[1:]))
			cl := dev.open(t, dev.config(t))
			for _, op := range ops[1:] {
				for kind, depth := range map[Kind]int{Latency: 1, Bandwidth: 16} {
					ctx, cancel := context.WithCancel(t.Context())
					test := Test{op, kind, 64, depth}
					r := newRun(Plan{Test: test, Peer: s.Addr(), Duration: time.Hour})
					go func() {
						for measured := 0; measured < 2*depth; {
							_ = cl.h.runOnLoop(func() error {
								measured = r.n
								return nil
							})
						}
						cancel()
					}()
					res, err := cl.runTest(ctx, r)
					if err != nil {
						t.Fatalf("%+v: %v", test, err)
					}
					check(t, test, res, 2*depth)
				}
			}
		})
	}
}
