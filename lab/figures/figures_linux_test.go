package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/lab/measure"
)

func TestMain(m *testing.M) {
	if child, err := measure.RunRole(allScenarios(0)); child { // of TestRun
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // children with the race detector sleep for a second
	goleak.VerifyTestMain(leak.Settled{M: m})
}

// TestEveryFigure runs each contestant in this process for a moment, and checks that it frees
// everything.
func TestEveryFigure(t *testing.T) {
	all := allScenarios(2)
	if err := measure.Check(all); err != nil {
		t.Error(err)
	}
	for _, s := range all {
		for _, e := range s.Entries {
			t.Run(s.Name+"/"+e.Name(), func(t *testing.T) {
				if err := s.Try(e); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestRun: a complete run, in separate processes, with the loops of the flag.
func TestRun(t *testing.T) {
	if err := measureAll(t.Context(), []string{"-quick", "-loops", "3", "loops"}); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{}, {"dance"}, {"echo", "spin"}, {""}} {
		if err := measureAll(t.Context(), args); err == nil {
			t.Errorf("%q were taken", args)
		}
	}
}

// TestLarge: a contestant's name sets the size of the flow.
func TestLarge(t *testing.T) {
	for name, want := range map[string]string{
		"actor 32 KiB":   "actor: 32768 of 1048576, 32, 8",
		"actor 1024 KiB": "actor: 1048576 of 1048576, 4, 1",
		"read/write":     "read/write: 1048576 of 0, 4, 1",
	} {
		f, e := sizedFlow(measure.Entry{Contestant: name})
		if got := fmt.Sprintf("%s: %d of %d, %d, %d", e.Name(), f.Size, f.Largest, f.Window, f.Batch); !strings.EqualFold(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
