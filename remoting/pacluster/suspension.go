package pacluster

import (
	"context"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
)

// isHalted reports whether this member may have no grains.
func (m *Member) isHalted() bool {
	select {
	case <-m.expelled:
		return true
	default:
		return m.suspended.Load()
	}
}

// stopGrains stops this member's grains: each when it has handled its current message.
func (m *Member) stopGrains() {
	if m.topologies == nil {
		return
	}
	name := m.Node.Name()
	// in a topology without members, no grain belongs here
	m.sys.Root.Send(actor.NewPID(name, disthash.PartitionActivatorActorName), &cluster.ClusterTopology{})
	var grains []*actor.PID
	for _, bucket := range m.sys.ProcessRegistry.LocalPIDs.LocalPIDs {
		bucket.IterCb(func(id string, _ any) {
			if strings.HasPrefix(id, disthash.PartitionActivatorActorName+"/") {
				grains = append(grains, actor.NewPID(name, id))
			}
		})
	}
	for _, pid := range grains {
		m.sys.Root.Stop(pid)
	}
}

// gated is a lookup that finds no grains while this member may have none.
type gated struct {
	cluster.IdentityLookup
	halted func() bool
}

// Get implements cluster.IdentityLookup.
func (g gated) Get(id *cluster.ClusterIdentity) *actor.PID {
	if g.halted() {
		return nil
	}
	return g.IdentityLookup.Get(id)
}

// setSuspended begins or ends a suspension.
func (m *Member) setSuspended(begins bool, silent []string) {
	m.suspended.Store(begins)
	if begins {
		m.stopGrains()
		m.sys.Logger().Warn("pacluster: no contact to the provider's server and to members: grains are stopped", "silent", silent)
		m.publishGuarded(func() { m.sys.EventStream.Publish(&Suspended{Silent: silent}) })
		return
	}
	m.sys.Logger().Info("pacluster: grains may be here again")
	m.publishGuarded(func() { m.sys.EventStream.Publish(&Resumed{}) })
}

// expelBy ends the membership.
func (m *Member) expelBy(c *claim, here int) {
	m.sys.Logger().Warn("pacluster: this process is no member any more",
		"by", c.name, "members", c.side.size, "here", here, "direct", c.direct)
	close(m.expelled)
	m.stopGrains()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), expelledFor)
		defer cancel()
		if err := m.Shutdown(ctx); err != nil {
			m.sys.Logger().Warn("pacluster: leaving after the expulsion", "err", err)
		}
	}()
	m.publishGuarded(func() { m.sys.EventStream.Publish(&Expelled{By: c.name, Members: c.side.size}) })
}

// publishGuarded calls publish, in which subscribers run. It logs if one of them does not return.
func (m *Member) publishGuarded(publish func()) {
	if err := callGuarded(func() error { publish(); return nil }); err != nil {
		m.sys.Logger().Error("pacluster: a subscriber has failed", "err", err)
	}
}

// expelledFor is how long an expelled member may take to leave.
const expelledFor = time.Minute
