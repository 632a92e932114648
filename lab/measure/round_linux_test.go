package measure

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newToy makes a client that only reports whether its run is quick.
func newToy(quick float64) Client {
	return Client{func(d time.Duration) (Sample, error) {
		return Sample{N: 1, Seconds: d.Seconds(), More: Metrics{"quick": quick}}, nil
	}, closeToy}
}

func closeToy() error { return nil }

func toyScenario(name string, dial func(addr string, e Entry) (Client, error)) Scenario {
	return Scenario{
		Name: name, Title: name, On: AnyCPU, Columns: []string{PerSecond}, Base: "a",
		Entries: []Entry{{Contestant: "a"}, {Contestant: "b"}},
		Bars:    []Bar{{What: "b against a", Metric: PerSecond, Entry: "b", Base: "a", Most: 1}},
		Serve: func(Entry) (Service, error) {
			return Service{"here", closeToy, func() Metrics { return Metrics{"served": 1} }}, nil
		},
		Dial: dial,
	}
}

var scenarios = []Scenario{
	toyScenario("works", func(addr string, e Entry) (Client, error) {
		if addr != "here" {
			return Client{}, errors.New("the server is not there")
		}
		if e.Quick {
			return newToy(1), nil
		}
		return newToy(0), nil
	}),
	toyScenario("fails", func(_ string, e Entry) (Client, error) {
		if e.Contestant == "b" {
			return newToy(0), nil
		}
		return Client{}, errors.New("it does not connect")
	}),
	toyScenario("hangs", func(string, Entry) (Client, error) {
		return Client{func(time.Duration) (Sample, error) { forever(); return Sample{}, nil }, closeToy}, nil
	}),
}

func toySettings(t *testing.T, args ...string) (set Settings) {
	t.Helper()
	f := flag.NewFlagSet("toy", flag.ContinueOnError)
	set.Flags(f, 2)
	if err := f.Parse(append([]string{"-t", "1ms"}, args...)); err != nil {
		t.Fatal(err)
	}
	return set
}

// TestRounds: every entry is measured in every round, in separate processes.
func TestRounds(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	doc := NewDocument(toySettings(t, "-cpuprofile", profile), "golang.org/x/sys")
	var out strings.Builder
	if err := doc.Measure(t.Context(), scenarios[:1], &out); err != nil {
		t.Fatal(err)
	}
	r := doc.Scenarios[0]
	if len(r.Entries) != 2 || len(r.Bars) != 1 || !r.Bars[0].Pass || r.Bars[0].Got != 1 {
		t.Fatalf("%+v: want two entries and a bar", r)
	}
	for _, e := range r.Entries {
		if len(e.Rounds) != 2 || e.Rounds[0][PerSecond] != 1000 || e.Rounds[1]["served"] != 1 || e.Rounds[0]["quick"] != 0 {
			t.Errorf("%+v: want two rounds of a millisecond", e)
		}
	}
	for _, want := range []string{"GOMAXPROCS=2", "2 interleaved rounds of 1ms", "Versions: sys ", "### works", "Not pinned", "| b against a | <= 1 | 1.00 |", "## Bars"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	for _, of := range []string{"a.server", "a.client", "b.server", "b.client"} {
		if s, err := os.Stat(profile + ".works." + of); err != nil || s.Size() == 0 {
			t.Errorf("the profile of %s: %v, want one", of, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "new")
	if err := doc.Leave(dir, "toy", "<!-- mine -->\n"); err != nil {
		t.Fatal(err)
	}
	var got Document
	b, err := os.ReadFile(filepath.Join(dir, "toy.json"))
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || got.Rounds != 2 || len(got.Scenarios) != 1 {
		t.Errorf("toy.json is of %+v, %v", got, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "toy.md")); err != nil || !strings.HasPrefix(string(b), "<!-- mine -->\n") {
		t.Errorf("toy.md begins with %.20q, %v", b, err)
	}
}

// TestQuick: a quick run is one round, and its entries have Quick set.
func TestQuick(t *testing.T) {
	doc := NewDocument(toySettings(t, "-quick"))
	if err := doc.Measure(t.Context(), scenarios[:1], io.Discard); err != nil {
		t.Fatal(err)
	}
	if rounds := doc.Scenarios[0].Entries[0].Rounds; len(rounds) != 1 || rounds[0]["quick"] != 1 {
		t.Errorf("%v: want one quick round", rounds)
	}
}

// TestFailure: an entry that fails is reported, and does not keep the others from running.
func TestFailure(t *testing.T) {
	doc := NewDocument(toySettings(t, "-rounds", "1"))
	var out strings.Builder
	err := doc.Measure(t.Context(), scenarios[1:2], &out)
	if err == nil || !strings.Contains(err.Error(), "fails: a, round 1: the client ended early") {
		t.Errorf("the error is %v", err)
	}
	r := doc.Scenarios[0]
	if len(r.Failures) != 1 || len(r.Entries[0].Rounds) != 0 || len(r.Entries[1].Rounds) != 1 || len(r.Bars) != 0 {
		t.Errorf("%+v: want a failure of a, a round of b, and no bar", r)
	}
	if !strings.Contains(out.String(), "Failed: a, round 1") {
		t.Errorf("the failure is not in\n%s", &out)
	}
	unknown := scenarios[0]
	unknown.Name = "none"
	if err := NewDocument(toySettings(t, "-quick")).Measure(t.Context(), []Scenario{unknown}, io.Discard); err == nil {
		t.Error("children have found a scenario that is not there")
	}
}

// TestInterrupted: the end of the context ends the children in the middle of their measurement.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	doc := NewDocument(toySettings(t))
	begun := time.Now()
	if err := doc.Measure(ctx, scenarios[2:], io.Discard); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v, want with the context's error", err)
	}
	if took := time.Since(begun); took > patience {
		t.Errorf("it took %v", took)
	}
	if len(doc.Scenarios) > 0 {
		t.Errorf("%+v: want no scenario that was measured in part", doc.Scenarios)
	}
	for range 2 { // no child is left that could be waited for
		if pid, err := unixWait(); err == nil {
			t.Errorf("child %d is left", pid)
		}
	}
}
