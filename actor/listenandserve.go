package actor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// drainFor is how long ListenAndServe gives connections to end.
const drainFor = 10 * time.Second

// ListenAndServe is what the main function of a server does: it listens at addr ([Serve]) with an
// identifier of owner's, waits until ctx ends, and shuts the runtime down. Connections are closed
// as with [Close], and what has not ended after 10 s is destroyed. owner gets what a listener's
// owner gets, except for Listening.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := rt.ListenAndServe(ctx, "10.0.0.1:7471", owner, rdma.IDConfig{})
//
// A nil error says that ctx has ended, or Shutdown was called, and nothing is left. Any other
// error says why the listener could not listen (a Failure) or has ended, or what Shutdown could
// not end. The runtime is shut down in any case but one: on the goroutine of a loop, which would
// wait for itself, the error is eventloop.ErrOnLoop, and nothing has happened.
func (rt *Runtime) ListenAndServe(ctx context.Context, addr string, owner *actor.PID, cfg IDConfig) error {
	if err := eventloop.MayWait(); err != nil {
		return fmt.Errorf("rdma: ListenAndServe: %w", err)
	}
	closed := make(chan error, 1)
	id := rt.createID(owner, cfg, func(err error) { closed <- err })
	_, err := Ask[*cmid.Listening](ctx, rt, id, &Serve{Addr: addr})
	if err == nil {
		select {
		case <-ctx.Done():
			rt.Scheduler().Resume()
		case err = <-closed:
			rt.Scheduler().Resume()
			if err == nil {
				err = ErrListenerClosed
			}
		}
	}
	if ctx.Err() != nil || rt.closing.Load() {
		err = nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	return errors.Join(err, rt.Shutdown(last))
}

// ErrListenerClosed is what ListenAndServe returns when somebody has closed its listener.
var ErrListenerClosed = errors.New("the listener was closed")
