package remoting_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/remoting"
)

// Shutdown returns although user code blocks a loop.
func TestShutdownWithBlockedLoop(t *testing.T) {
	block, blocked := make(chan struct{}), make(chan struct{}, 1)
	b := open(t, remoting.Config{Expose: everything, Allow: func(remoting.Peer, remoting.Access, string) error {
		blocked <- struct{}{}
		<-block
		return nil
	}}, 1)
	a := start(t, remoting.Config{})
	a.sys.Root.Send(b.pid("anybody"), text("x"))
	<-blocked
	ctx, cancel := timeout(100 * time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := b.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	within(t, "Shutdown", began, 10*time.Second)
	close(block)
	b.close()
}
