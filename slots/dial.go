package slots

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/optional"
)

// Dial connects to a Listener at addr, "host:port". If ctx ends before both sides have their slots,
// the attempt is given up. The addresses of a name share the time until its deadline. errors.Is
// finds rdma.ErrSecured in the error if the connection is secured and its Security does not allow
// one-sided operations (Security.AllowOneSided). Any goroutine except a loop's.
func Dial(ctx context.Context, rt *rdma.Runtime, addr string, config ...Config) (*Conn, error) {
	cfg, err := optional.Value(config).withDefaults()
	if err != nil {
		return nil, err
	}
	c := newConn(rt, cfg)
	sys := rt.System()
	c.owner = sys.Root.SpawnPrefix(actor.PropsFromProducer(func() actor.Actor { return &owner{conn: c} }, rt.OnLoop()), "slots")
	id := rt.CreateID(c.owner, cfg.idConfig())
	_, err = rdma.Ask[*rdma.Established](ctx, rt, id, &rdma.Dial{Addr: addr, Src: cfg.Local, PrivateData: greetingData()})
	if err != nil {
		// a Failure: Closed follows and stops the owner
		if _, ok := errors.AsType[rdma.Failure](err); !ok {
			sys.Root.Stop(c.owner) // and with it the identifier
		}
		return nil, fmt.Errorf("slots: dial %s: %w", addr, err)
	}
	if err := c.awaitMade(ctx); err != nil {
		sys.Root.Stop(c.owner)
		return nil, fmt.Errorf("slots: dial %s: %w", addr, err)
	}
	return c, nil
}

// awaitMade waits until the connection is ready.
func (c *Conn) awaitMade(ctx context.Context) error {
	select {
	case err := <-c.made:
		c.rt.Scheduler().Resume()
		return err
	case <-ctx.Done():
		c.rt.Scheduler().Resume()
		return context.Cause(ctx)
	}
}
