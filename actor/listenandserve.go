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

// ListenAndServe does the work of a server's main function: it listens at addr ([Serve]) with an
// identifier that owner owns, waits until ctx ends, and shuts the runtime down. Connections are
// closed as with [Close], and those that have not ended after 10 s are destroyed. owner gets all
// events of a listener's owner, except for Listening.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := rt.ListenAndServe(ctx, "10.0.0.1:7471", owner, rdma.IDConfig{})
//
// A nil error means that ctx has ended, or Shutdown was called, and nothing is left. Any other
// error is the reason why the listener could not listen (a Failure) or has ended, or names the
// identifiers that Shutdown could not end. The runtime is shut down in any case but one: on the
// goroutine of a loop, which would wait for itself, the error is eventloop.ErrOnLoop, and nothing
// has happened.
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

// ErrListenerClosed is returned by ListenAndServe when its listener was closed by other code.
var ErrListenerClosed = errors.New("the listener was closed")
