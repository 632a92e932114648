package inspect

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/states"
)

// testPatience is the time-out of a test for events that should occur soon.
const testPatience = 3 * time.Minute

// rig is a program with a page.
type rig struct {
	testing.TB
	rt     *rdma.Runtime
	sys    *actor.ActorSystem
	driver *iwarp.Driver
	page   *Page
	url    string // of the page
}

// newRig opens a runtime over the embedded device, and serves its page.
func newRig(tb testing.TB, cfg Config, loops rdma.Config) *rig {
	tb.Helper()
	sys := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	tb.Cleanup(sys.Shutdown)
	driver := iwarp.New()
	loops.Device = driver
	if cfg.Actions != nil && cfg.Actions.Capture == nil {
		cfg.Actions.Capture = captureOf(driver)
	}
	rt, err := rdma.Open(sys, loops)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			tb.Errorf("shutdown: %v", err)
		}
	})
	page, err := New(rt, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(page.cfg.Path, page)
	server := httptest.NewServer(mux)
	tb.Cleanup(server.Close)
	tb.Cleanup(page.Close)
	return &rig{tb, rt, sys, driver, page, server.URL + page.cfg.Path}
}

// captureOf returns Actions.Capture of the embedded device.
func captureOf(driver *iwarp.Driver) func(io.Writer, Chosen) (Capture, error) {
	return func(w io.Writer, c Chosen) (Capture, error) {
		return driver.StartCapture(iwarp.CaptureConfig{
			Writer: w, Local: c.Local, Peer: c.Peer, LocalPort: c.LocalPort, PeerPort: c.PeerPort, MaxBytes: c.MaxBytes,
		})
	}
}

// echo listens, and returns messages to their sender.
func (r *rig) echo() rdma.Addr {
	r.Helper()
	owner := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			ctx.Respond(rdma.NewSend(m.Data))
		}
	}, r.rt.OnLoop()))
	id := r.rt.CreateID(owner)
	on, err := rdma.Ask[*rdma.Listening](r.Context(), r.rt, id, &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		r.Fatal(err)
	}
	return on.Local
}

// connect makes a connection that sends each answer again. load is the number of messages under
// way.
func (r *rig) connect(to rdma.Addr, load int) *actor.PID {
	r.Helper()
	established := make(chan struct{})
	var id *actor.PID
	owner := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.Established:
			close(established)
			for range load {
				ctx.Respond(rdma.NewSend(make([]byte, 64)))
			}
		case *rdma.Received:
			ctx.Respond(rdma.NewSend(m.Data))
		}
	}, r.rt.OnLoop()))
	id = r.rt.CreateID(owner)
	r.sys.Root.Send(id, &rdma.Dial{Addr: to.String()})
	select {
	case <-established:
	case <-time.After(testPatience):
		r.Fatal("not established")
	}
	return id
}

// idle makes n identifiers that do nothing.
func (r *rig) idle(n int) {
	r.Helper()
	owner := r.sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.rt.OnLoop()))
	for range n {
		r.rt.CreateID(owner)
	}
	r.until("all identifiers are there", func() bool {
		there := 0
		for _, i := range r.rt.Inspect() { // others may exist, too
			if i.State == states.Idle {
				there++
			}
		}
		return there >= n
	})
}

// until waits for a condition.
func (r *rig) until(what string, is func() bool) {
	r.Helper()
	for end := time.Now().Add(testPatience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("never: %s", what)
		}
	}
}

// get sends a request and returns its answer.
func (r *rig) get(path string, header ...string) (status int, h http.Header, body string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return r.do(req)
}

func (r *rig) do(req *http.Request) (status int, h http.Header, body string) {
	r.Helper()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// read gets JSON. On a busy machine the page may have none yet.
func read[T any](r *rig, path string) (v T) {
	r.Helper()
	var status int
	var h http.Header
	var body string
	r.until("an answer to "+path, func() bool {
		status, h, body = r.get(path)
		return status != http.StatusServiceUnavailable
	})
	if status != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
		r.Fatalf("%s: %d %s\n%s", path, status, h.Get("Content-Type"), body)
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		r.Fatalf("%s: %v\n%s", path, err, body)
	}
	return v
}

// quick is the shortest interval.
var quick = Config{Interval: minInterval}

// fresh waits until the page reads again.
func fresh() { time.Sleep(minInterval + time.Millisecond) }
