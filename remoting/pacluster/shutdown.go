package pacluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Shutdown leaves the cluster, and returns when that is done or ctx ends. First the provider learns
// it, so that the others find it out; then the grains of this member stop, one message after the
// other, and their watchers on other members hear that; then the links end in order. What blocks
// goes on in the background when ctx has ended, and a provider that waits for its server after 5 s.
// The actor system and the runtime stay, for their owner to shut down. It may be called more than
// once.
func (m *Member) Shutdown(ctx context.Context) error {
	m.shutdown.Do(func() {
		close(m.leaving)
		go func() {
			defer close(m.completed)
			m.err = m.leaveAndWait(ctx)
		}()
	})
	select {
	case <-m.completed:
		return m.err
	case <-ctx.Done():
		return fmt.Errorf("pacluster: leaving: %w", ctx.Err())
	}
}

// How long parts of the cluster may take to end. A provider may wait for a server that has gone.
const (
	providerFor = 5 * time.Second
	partFor     = 15 * time.Second // Proto.Actor waits 10 s for grains
)

func (m *Member) leaveAndWait(ctx context.Context) error {
	var errs []error
	left := make(chan error, 1)
	go func() {
		<-m.started
		left <- m.leaveCluster()
	}()
	select {
	case err := <-left:
		errs = append(errs, err)
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("pacluster: the cluster: %w", context.Cause(ctx)))
	}
	return errors.Join(append(errs, m.Node.Shutdown(ctx))...)
}

// leaveCluster acts as Proto.Actor's Cluster.Shutdown, without its two seconds, and without
// shutting down the actor system before the grains have stopped. Parts that have not started
// completely panic.
func (m *Member) leaveCluster() error {
	c := m.Cluster
	if c == nil {
		return nil
	}
	parts := []struct {
		name  string
		bound time.Duration
		end   func() error
	}{
		// then none holds it
		{"presence", partFor, func() error { return m.sys.Root.StopFuture(m.present).Wait() }},
		{"provider", providerFor, func() error { return c.Config.ClusterProvider.Shutdown(true) }},
		{"gossip", partFor, func() error {
			if !m.client {
				c.Gossip.SetState(leftKey, &emptypb.Empty{})
			}
			return nil
		}},
		{"grains", partFor, func() error { c.IdentityLookup.Shutdown(); return nil }},
		{"gossip", partFor, func() error { c.Gossip.Shutdown(); return nil }},
		{"pub/sub", partFor, func() error { return m.sys.Root.StopFuture(m.sys.NewLocalPID(cluster.PubSubDeliveryName)).Wait() }},
		{"shell", partFor, func() error { c.Remote.Shutdown(true); return nil }},
	}
	var errs []error
	for _, p := range parts {
		if err := callWithin(p.bound, p.end); err != nil {
			errs = append(errs, fmt.Errorf("pacluster: %s: %w", p.name, err))
		}
	}
	m.sys.EventStream.Unsubscribe(m.observer)
	return errors.Join(errs...)
}

// leftKey is the key of gossip by which a member announces that it leaves. With Proto.Actor's
// GracefullyLeftKey, each member would block it without asking it: see checkGossip.
const leftKey = "pacluster.left"

// callWithin calls do on a goroutine, which continues in the background after the bound.
func callWithin(bound time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- callGuarded(do) }()
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("it has not ended in %v: %w", bound, unix.ETIMEDOUT)
	}
}

// Streams is how many gRPC calls the shell that Proto.Actor starts has made or taken: 0, because
// messages go over RDMA.
func (m *Member) Streams() int { return int(m.shell.streams.Load()) }
