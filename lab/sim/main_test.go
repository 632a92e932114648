package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWorker is the main function of the test program as a worker.
func TestWorker(t *testing.T) {
	switch os.Getenv(workerEnv) {
	case "":
	case "panic":
		panic("as a world may")
	case "hang":
		time.Sleep(time.Hour) // without cgo, the Go runtime ends a process that is blocked forever
	case "spin":
		for { //nolint:staticcheck // it is to use all of a processor
		}
	case "slow":
		for n, end := uint64(0), time.Now().Add(2*slow); time.Now().Before(end); time.Sleep(slow / 100) {
			for range 1 << 20 {
				n++
			}
		}
		exitWith(serveJobs(t))
	default:
		exitWith(serveJobs(t))
	}
}

// slow is the patience with the process that takes longer, without using more processor time.
const slow = 2 * time.Second

// TestPool plays worlds in a process, and in one that panics, hangs, spins, or gets little of the
// processor.
func TestPool(t *testing.T) {
	if os.Getenv(workerEnv) != "" {
		return
	}
	for _, c := range []struct{ env, want string }{
		{"1", ""},
		{"panic", "the process has ended (exit status 2): panic: as a world may"},
		{"hang", "no end within"},
		{"spin", "no end within"},
		{"slow", ""},
	} {
		patience := time.Minute
		switch c.env {
		case "hang", "spin":
			patience = 100 * time.Millisecond
		case "slow":
			patience = slow
		}
		l := newPool(1, patience)
		l.env = []string{workerEnv + "=" + c.env}
		o, err := l.playWorld(job{Seed: 1, Only: []string{"streams"}})
		if err != nil || !strings.HasPrefix(o.Failure, c.want) || (o.Failure == "") != (c.want == "") || o.Seed != 1 {
			t.Errorf("%s: %+v (%v), want a failure that begins with %q", c.env, o, err, c.want)
		}
		l.close()
	}
}

// TestTwoProcesses plays the same seeds in two processes with different settings.
func TestTwoProcesses(t *testing.T) {
	if os.Getenv(workerEnv) != "" {
		return
	}
	one, other := newPool(1, time.Minute), newPool(1, time.Minute)
	defer one.close()
	defer other.close()
	one.env = append(one.env, "GOGC=off", "GOMEMLIMIT=1GiB")
	other.env = append(other.env, "GOMAXPROCS=4", "GOGC=5", "GODEBUG=asyncpreemptoff=1")
	for seed := range uint64(12) {
		a, err := one.playWorld(job{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		b, err := other.playWorld(job{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if a.Failure != "" || b.Failure != "" || a.Hash == 0 || a.Hash != b.Hash || a.Steps != b.Steps {
			t.Errorf("seed %d: %+v in one process, %+v in another one", seed, a, b)
		}
	}
}

// TestState continues where the last run ended, with its counted failures.
func TestState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "seed")
	want := record{}
	for _, next := range []record{
		{Next: 1e9, Worlds: 17, Failures: []kind{{"one that is long", 3, 7}}},
		{Next: 18, Worlds: 18}, // shorter than the previous record
		{Next: 19},
	} {
		s, err := openState(file)
		if err != nil || !reflect.DeepEqual(s.record, want) {
			t.Fatalf("it begins with %+v (%v), want %+v", s, err, want)
		}
		if _, err := openState(file); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("two runs have it at once: %v", err)
		}
		if err := errors.Join(s.saveRecord(next), s.close()); err != nil {
			t.Fatal(err)
		}
		want = next
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(file); err == nil {
		t.Error("a state that is none is taken")
	}
	if _, err := openState(filepath.Join(file, "below")); err == nil {
		t.Error("a state is taken that cannot be saved")
	}
}

// TestRecord counts failures once, although the next run repeats seeds that were still in play.
func TestRecord(t *testing.T) {
	r := &run{
		first: 10, next: 20, busy: map[uint64]bool{15: true, 18: true},
		failures: []outcome{{Seed: 17, Failure: "at 1s"}, {Seed: 14, Failure: "at 2s"}, {Seed: 12, Failure: "else"}, {Seed: 11, Failure: "at 3s"}},
		old:      record{Next: 10, Worlds: 100, Failures: []kind{{"at N", 1, 13}}},
	}
	want := record{Next: 15, Worlds: 105, Failures: []kind{{"at N", 3, 11}, {"else", 1, 12}}}
	if got := r.newRecord(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
