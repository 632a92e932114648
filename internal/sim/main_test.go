package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWorker is what the test program runs when it is a worker. Then it ends.
func TestWorker(t *testing.T) {
	switch os.Getenv(workerEnv) {
	case "":
	case "panic":
		panic("as a world may")
	case "hang":
		<-t.Context().Done()
	default:
		exit(serve(t))
	}
}

// TestPool plays worlds in a process, and one that ends with its seed.
func TestPool(t *testing.T) {
	if os.Getenv(workerEnv) != "" {
		return
	}
	for _, c := range []struct{ env, want string }{
		{"1", ""},
		{"panic", "the process has ended: panic: as a world may"},
		{"hang", "no end within"},
	} {
		patience := time.Minute
		if c.env == "hang" {
			patience = 100 * time.Millisecond
		}
		l := newPool(1, patience)
		l.env = workerEnv + "=" + c.env
		o, err := l.play(job{Seed: 1, Only: []string{"echo"}})
		if err != nil || !strings.HasPrefix(o.Failure, c.want) || (o.Failure == "") != (c.want == "") || o.Seed != 1 {
			t.Errorf("%s: %+v (%v), want a failure that begins with %q", c.env, o, err, c.want)
		}
		l.close()
	}
}

// TestState goes on where the last run has ended.
func TestState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed")
	for _, want := range []uint64{0, 17, 18} {
		s, err := openState(file)
		if err != nil || s.next != want {
			t.Fatalf("it begins with %v (%v), want %d", s, err, want)
		}
		if err := s.save(max(want+1, 17)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(file); err == nil {
		t.Error("a state that is no seed is taken")
	}
}
