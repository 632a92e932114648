package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// ListenAndServe listens at addr ([Serve]) with an identifier that owner owns until ctx ends, and
// then destroys that identifier: requests that are not answered yet are rejected, and connections
// stay, until [Runtime.Shutdown] closes them. owner gets all events of a listener's owner, except
// for Listening. The last one is the listener's Closed, whose Sender is no connection.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := rt.ListenAndServe(ctx, "10.0.0.1:7471", owner)
//	err = errors.Join(err, rt.Shutdown(shutdownCtx))
//
// A nil error means that ctx has ended, or Shutdown was called. Any other error is the reason why
// the listener could not listen (a Failure) or has ended. On the goroutine of a loop, which would
// wait for itself, the error is eventloop.ErrOnLoop, and nothing has happened.
func (rt *Runtime) ListenAndServe(ctx context.Context, addr string, owner *actor.PID, cfg ...IDConfig) error {
	if err := eventloop.MayWait(); err != nil {
		return fmt.Errorf("rdma: ListenAndServe: %w", err)
	}
	closed := make(chan error, 1)
	id := rt.createID(owner, rt.idConfig(cfg), func(err error) { closed <- err })
	_, err := Ask[*cmid.Listening](ctx, rt, id, &Serve{Addr: addr})
	if err == nil {
		select {
		case <-ctx.Done():
			rt.Scheduler().Resume()
			rt.sys.Root.Send(id, &DestroyID{})
			err = <-closed
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
	return err
}

// ErrListenerClosed is returned by ListenAndServe when its listener was closed by other code.
var ErrListenerClosed = errors.New("the listener was closed")
