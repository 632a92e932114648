package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

func TestMain(m *testing.M) {
	if child, err := measure.RunRole(allScenarios); child {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // children with the race detector sleep for a second
	goleak.VerifyTestMain(leak.Settled{M: m},
		// A goroutine of another module that lives as long as the process.
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/remote.(*endpointManager).start.func1"),
	)
}

// TestEveryEntry makes each contestant of each scenario answer in this process: every echo is
// compared with the message. It omits those with grains: a cluster leaves goroutines behind.
func TestEveryEntry(t *testing.T) {
	for _, s := range allScenarios {
		if strings.HasPrefix(s.Name, "grain-") {
			continue
		}
		for _, e := range s.Entries {
			t.Run(s.Name+"/"+e.Name(), func(t *testing.T) {
				if underRace && e.Contestant == stock {
					t.Skip("its remote races with itself at start and stop")
				}
				if err := s.Try(e); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestRun runs two scenarios as the program does, in separate processes.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"-quick", "-only", "echo,overload", "-contestants", "actor,rpc,grpc-go", "-o", dir}); err != nil {
		t.Fatal(err)
	}
	var doc measure.Document
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
		if len(e.Rounds) != 1 || e.Rounds[0][measure.P50] <= 0 || e.Rounds[0][measure.CPUPer] <= 0 || e.Rounds[0][measure.PerSecond] <= 0 {
			t.Errorf("%+v: want one round with figures", e)
		}
	}
	for file, want := range map[string]string{"bench.md": "| call, 1 caller", "bench.svg": ">grpc-go</text>"} {
		if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %.100q, %v; want %q in it", file, b, err, want)
		}
	}
}

// TestRunRemote compares typed remote actors as the program does.
func TestRunRemote(t *testing.T) {
	// Proto.Actor's remote races with itself.
	if name, value, ok := strings.Cut(proctest.LogRaces(t), "="); ok {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	if err := run(t.Context(), []string{"-remote", "-quick", "-only", "remote-open,remote-sink,grain-request", "-o", dir}); err != nil {
		t.Fatal(err)
	}
	var doc measure.Document
	b, err := os.ReadFile(filepath.Join(dir, "bench-remote.json"))
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil || len(doc.Scenarios) != 3 {
		t.Fatalf("%+v, %v: want three scenarios", doc, err)
	}
	for i, metrics := range [][]string{
		{measure.PerSecond, accepted}, {sinkServerMiB, sinkClientMiB, sinkSent}, {measure.P50, measure.AllocsPer},
	} {
		for _, e := range doc.Scenarios[i].Entries {
			for _, m := range metrics {
				if len(e.Rounds) != 1 || e.Rounds[0][m] <= 0 {
					t.Errorf("%s: %+v: want one round with %s", doc.Scenarios[i].Name, e, m)
				}
			}
		}
	}
}

// TestRunSecure compares secured connections as the program does: both processes have the keys.
func TestRunSecure(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"-secure", "-quick", "-only", "secure-bulk,secure-connect", "-o", dir}); err != nil {
		t.Fatal(err)
	}
	var doc measure.Document
	b, err := os.ReadFile(filepath.Join(dir, "bench-secure.json"))
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil || len(doc.Scenarios) != 2 || strings.Contains(doc.Head(), "no TLS") {
		t.Fatalf("%+v, %v: want two scenarios of secured connections", doc, err)
	}
	for i, metric := range []string{measure.MicrosPer, measure.P50} {
		r := doc.Scenarios[i]
		for _, e := range r.Entries {
			if len(e.Rounds) != 1 || e.Rounds[0][metric] <= 0 {
				t.Errorf("%s: %+v: want one round with %s", r.Name, e, metric)
			}
		}
		if len(r.Failures) > 0 || i == 0 && len(r.Bars) == 0 {
			t.Errorf("%s: %v, %v", r.Name, r.Failures, r.Bars)
		}
	}
	if err := run(t.Context(), []string{"-secure", "-remote", "-quick"}); err == nil {
		t.Error("two comparisons at once")
	}
}

// TestScenarios checks that names are unique, and that each bar's entries exist.
func TestScenarios(t *testing.T) {
	if err := measure.Check(allScenarios); err != nil {
		t.Error(err)
	}
}
