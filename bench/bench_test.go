package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
)

func TestMain(m *testing.M) {
	quick = true
	if role := os.Getenv(roleVariable); role != "" { // a child of TestRun
		if err := runRole(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(leak.Settled{M: m},
		// What others leave behind for the life of a process.
		goleak.IgnoreTopFunction("github.com/cloudwego/netpoll.(*manager).Reset.func1"),
		goleak.IgnoreAnyFunction("github.com/cloudwego/netpoll.(*defaultPoll).Wait"),
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/remote.(*endpointManager).start.func1"),
	)
}

// TestEveryEntry has each contestant of each scenario answer in this process: every echo is compared with what was sent.
func TestEveryEntry(t *testing.T) {
	for _, s := range scenarios {
		for _, e := range s.entries {
			t.Run(s.name+"/"+e.name(), func(t *testing.T) {
				if underRace && e.contestant == "proto.actor" {
					t.Skip("its remote races with itself at start and stop")
				}
				svc, err := s.serve(e)
				if err != nil {
					t.Fatal(err)
				}
				c, err := s.dial(svc.Addr(), e)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // the warm-up, and what is measured
					smp, err := c.Run(2 * time.Millisecond)
					if err != nil {
						t.Fatal(err)
					}
					none := s.name == "many" || s.name == "overload" // calls have their times there, which may be later
					if smp.Seconds <= 0 || smp.N < 1 && !none || smp.Bytes%max(smp.N, 1) != 0 {
						t.Errorf("%+v is no sample", smp)
					}
				}
				if err := errors.Join(c.Close(), svc.Close()); err != nil {
					t.Errorf("closing: %v", err)
				}
			})
		}
	}
}

// TestLies: an answer that is not what was sent fails its call.
func TestLies(t *testing.T) {
	b := blocking{call: func(p, room []byte) error {
		copy(room, p)
		room[len(room)-1]++
		return echoed(room, p)
	}}
	if n, err := b.Trips(newPayload(payloadSize), time.Second, newHistogram()); err == nil || n > 0 {
		t.Errorf("%d calls and %v, want an error at once", n, err)
	}
	tr := &trips{payload: newPayload(payloadSize), h: newHistogram()}
	if done, err := tr.received([]byte("something else"), nil); err == nil || !done {
		t.Errorf("an actor's answer that is something else: %v", err)
	}
}

// TestRun: the whole way, in processes of their own, on two scenarios.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{"-quick", "-only", "echo,overload", "-contestants", "actor,rpc,grpc-go", "-o", dir}); err != nil {
		t.Fatal(err)
	}
	var doc document
	b, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Scenarios) != 2 || !doc.Quick || doc.Go == "" {
		t.Fatalf("%+v: want two scenarios of a quick run", doc)
	}
	echo := doc.Scenarios[0]
	if len(echo.Entries) != 3 || len(echo.Bars) != 2 || len(echo.Failures) > 0 {
		t.Errorf("%+v: want three entries, and the bars of rpc", echo)
	}
	for _, e := range echo.Entries {
		if len(e.Rounds) != 1 || e.Rounds[0][p50] <= 0 || e.Rounds[0][cpuPer] <= 0 || e.Rounds[0][perSecond] <= 0 {
			t.Errorf("%+v: want one round with figures", e)
		}
	}
	for file, want := range map[string]string{"bench.md": "| call, 1 caller", "bench.svg": "<?xml"} {
		if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %.100q, %v; want %q in it", file, b, err, want)
		} else if strings.Contains(string(b), "<text") {
			t.Errorf("%s needs a font", file)
		}
	}
}

// TestFailure: a contestant that fails is told of, and does not keep the others from running.
func TestFailure(t *testing.T) {
	s := scenario{name: "none", entries: blockingEntries("verbs", "actor")} // children do not find it
	res, err := measure(s, settings{rounds: 1, run: time.Millisecond, quick: true})
	if err == nil || len(res.Failures) != 2 {
		t.Errorf("%v and %q, want two failures", err, res.Failures)
	}
}

func TestJudge(t *testing.T) {
	r := result{Entries: []measured{
		{Name: "a", Rounds: []metrics{{p50: 1, p99: 4}, {p50: 3, p99: 8}, {p50: 2, p99: 6}}},
		{Name: "b", Rounds: []metrics{{p50: 4}, {p50: 4}, {p50: 8}}},
		{Name: "absent"},
	}}
	for _, c := range []struct {
		bar              bar
		got, least, most float64
		pass             bool
	}{
		{bar{metric: p50, entry: "a", base: "b", most: 0.5}, 0.5, 0.25, 0.75, true},
		{bar{metric: p50, entry: "a", base: "b", most: 0.4}, 0.5, 0.25, 0.75, false},
		{bar{metric: p50, entry: "a", base: "b", least: 0.6}, 0.5, 0.25, 0.75, false},
		{bar{metric: p50, entry: "b", base: "a", least: 2}, 2, 4.0 / 3, 4, true},
		{bar{metric: p99, entry: "a", ofItself: p50, most: 2}, 3, 8.0 / 3, 4, false},
		{bar{metric: p99, entry: "a", most: 6}, 6, 4, 8, true},
	} {
		got, ok := r.judge(c.bar)
		near := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
		if !ok || !near(got.Got, c.got) || !near(got.Least, c.least) || !near(got.Most, c.most) || got.Pass != c.pass {
			t.Errorf("%+v: %+v, want %v (%v to %v), pass %t", c.bar, got, c.got, c.least, c.most, c.pass)
		}
	}
	for _, b := range []bar{{entry: "absent"}, {entry: "nobody"}, {entry: "a", base: "absent"}} {
		if _, ok := r.judge(b); ok {
			t.Errorf("%+v was judged without figures", b)
		}
	}
}

func TestChoose(t *testing.T) {
	got, err := choose([]string{"calls"}, "rpc,grpc-go")
	if err != nil || len(got) != 1 || len(got[0].entries) != 2 {
		t.Errorf("%+v, %v; want calls with two entries", got, err)
	}
	if _, err := choose([]string{"dance"}, ""); err == nil || !strings.Contains(err.Error(), `"dance"`) {
		t.Errorf("a scenario that is not there: %v", err)
	}
	names := make(map[string]bool)
	for _, s := range scenarios {
		if names[s.name] {
			t.Errorf("two scenarios are called %s", s.name)
		}
		names[s.name] = true
		for _, b := range s.bars {
			if _, _, err := find(s.name, b.entry); err != nil {
				t.Errorf("a bar of %s: %v", s.name, err)
			}
			if _, _, err := find(s.name, b.base); err != nil && b.base != "" {
				t.Errorf("a bar of %s: %v", s.name, err)
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0.123: "0.12", 9.87: "9.87", 12.34: "12.3", 123.4: "123", 1234: "1,234", 1234567: "1,234,567"} {
		if got := number(x); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
}
