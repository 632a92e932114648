package pacluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Shutdown leaves the cluster, and returns when that is done or ctx ends. First the provider learns
// it, so that the others find it out; then the grains of this member stop, one message after the
// other, and their watchers on other members hear that; then the links end in order. What blocks
// goes on in the background when ctx has ended. The actor system and the runtime stay, for their
// owner to shut down. It may be called more than once.
func (m *Member) Shutdown(ctx context.Context) error {
	m.shutdown.Do(func() {
		close(m.leaving)
		go func() {
			defer close(m.completed)
			m.err = m.leave(ctx)
		}()
	})
	select {
	case <-m.completed:
		return m.err
	case <-ctx.Done():
		return fmt.Errorf("pacluster: leaving: %w", ctx.Err())
	}
}

// leave does what Proto.Actor's Cluster.Shutdown does, without its two seconds, and without
// shutting down the actor system before the grains have stopped.
func (m *Member) leave(ctx context.Context) error {
	var errs []error
	try := func(what string, do func() error) {
		defer func() {
			if v := recover(); v != nil { // a cluster that has not started completely
				errs = append(errs, fmt.Errorf("pacluster: %s: %v", what, v))
			}
		}()
		if err := do(); err != nil {
			errs = append(errs, fmt.Errorf("pacluster: %s: %w", what, err))
		}
	}
	if c := m.Cluster; c != nil {
		try("provider", func() error { return c.Config.ClusterProvider.Shutdown(true) })
		try("gossip", func() error {
			if m.client {
				return nil
			}
			c.Gossip.SetState(cluster.GracefullyLeftKey, &emptypb.Empty{})
			return nil
		})
		try("grains", func() error { c.IdentityLookup.Shutdown(); return nil })
		try("gossip", func() error { c.Gossip.Shutdown(); return nil })
		try("pub/sub", func() error {
			return m.sys.Root.StopFuture(m.sys.NewLocalPID(cluster.PubSubDeliveryName)).Wait()
		})
		try("shell", func() error { c.Remote.Shutdown(true); return nil })
		m.sys.EventStream.Unsubscribe(m.observer)
	}
	try("node", func() error { return m.Node.Shutdown(ctx) })
	return errors.Join(errs...)
}

// Streams is how many gRPC calls the shell that Proto.Actor starts has made or taken: 0, because
// messages go over RDMA.
func (m *Member) Streams() int { return int(m.shell.streams.Load()) }
