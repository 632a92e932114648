package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
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
