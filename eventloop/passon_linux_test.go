package eventloop

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
)

// A Shutdown that begins while a host's goroutine ends finds either that goroutine or none: one
// other goroutine ends the loop.
func TestShutdownWhileTheHostEnds(t *testing.T) {
	l, err := New(Config{Logger: slog.New(slog.DiscardHandler), OnPanic: func(Panic) {}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.FD(); err != nil {
		t.Fatal(err)
	}
	held, in, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	if err := l.Post(func() { close(in); <-held; runtime.Goexit() }); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(left)
		_ = l.Turn()
	}()
	<-in
	goroutines.mu.Lock() // the goroutine waits in clearGoroutine
	close(held)
	for l.life.goroutine.Load() != 0 {
		runtime.Gosched()
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Shutdown(context.Background()) }()
	for !l.life.closing.Load() && l.life.mu.TryLock() { // until it has begun, or waits
		l.life.mu.Unlock()
		runtime.Gosched()
	}
	goroutines.mu.Unlock()
	var gone *GoexitError
	if err := <-ended; !errors.As(err, &gone) {
		t.Errorf("Shutdown: %v", err)
	}
	<-left
}
