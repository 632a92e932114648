package pacluster

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
)

// Members learn of a change at different times. Until all know it, one of them may ask another for
// a grain that belongs elsewhere according to the newer view. Proto.Actor's lookup makes it
// without a check, and checks only at the next change: until then there are two of that grain.

// again are the delays after a change at which a member checks its grains again. By then all
// members have learned of the change, unless the provider takes longer. The checks are few: if a
// member checks while it alone has not learned of the next change, it stops a grain that already
// belongs here.
var again = []time.Duration{3 * time.Second, 7 * time.Second}

// stopMisplaced stops the grains that belong to another member, after each change. Requests for
// them then reach those that stay.
func (m *Member) stopMisplaced() {
	// the cluster is starting, and writes what NewLocalPID reads
	pid := actor.NewPID(m.Node.Name(), disthash.PartitionActivatorActorName)
	var latest *cluster.ClusterTopology
	var due <-chan time.Time
	next := 0
	for {
		select {
		case latest = <-m.topologies:
			next = 0
			due = time.After(again[0])
		case <-due:
			m.sys.Root.Send(pid, latest)
			if next++; next < len(again) {
				due = time.After(again[next])
			} else {
				due = nil
			}
		case <-m.leaving:
			return
		}
	}
}
