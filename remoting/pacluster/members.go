package pacluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"

	"github.com/rdmactor/rdmactor/remoting"
)

// Proto.Actor blocks a member's id for ever once its provider has not found the member. So a
// process that has stood still, or that was cut off, is refused by the others from then on, and
// goes on by itself: it has grains that the others have, too. Here it learns that, and ends.

// probeEvery is how often a member that has departed is looked for, because the network may have
// been in two parts. It is a mean. Of two members that dial each other at the same time only one
// hears that it is refused, and members that were started together would do so each time.
const probeEvery = 3 * time.Second

// mostDeparted is how many of them are remembered, the latest.
const mostDeparted = 64

// blocked is why Admit refuses a node that is no member any more. Its text is in the goodbye, by
// which that node knows how many members it would meet.
type blocked struct{ members int }

const blockedText = "pacluster: it is no member any more, of a cluster of "

func (b *blocked) Error() string { return fmt.Sprintf("%s%d", blockedText, b.members) }

// Is has errors.Is find ErrBlocked.
func (b *blocked) Is(target error) bool { return target == ErrBlocked }

// refusal marks what this member's Admit has answered, in contrast to the peer's.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// blockedBy reads from the reason of a disconnection that the peer has blocked this member, and how
// many members the peer's cluster has.
func blockedBy(err error) (members int, ok bool) {
	var own refusal
	if !errors.Is(err, remoting.ErrBlocked) || errors.As(err, &own) {
		return 0, false
	}
	_, text, ok := strings.Cut(err.Error(), blockedText)
	if !ok {
		return 0, false
	}
	_, err = fmt.Sscan(text, &members)
	return members, err == nil
}

// departed are the members that have left, by their addresses, the latest last.
type departed struct {
	mu   sync.Mutex
	list []string
}

func (d *departed) change(joined, left []*cluster.Member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	remove := func(addr string) {
		for i, a := range d.list {
			if a == addr {
				d.list = append(d.list[:i], d.list[i+1:]...)
				return
			}
		}
	}
	for _, m := range left {
		remove(m.Address())
		d.list = append(d.list, m.Address())
	}
	for _, m := range joined {
		remove(m.Address())
	}
	d.list = d.list[max(0, len(d.list)-mostDeparted):]
}

func (d *departed) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.list...)
}

func (d *departed) has(addr string) bool {
	for _, a := range d.all() {
		if a == addr {
			return true
		}
	}
	return false
}

// observe is called for every event of the actor system.
func (m *Member) observe(ev any) {
	switch ev := ev.(type) {
	case *remote.EndpointTerminatedEvent: // a member was blocked just before
		m.blocked.Store(m.Cluster.Remote.BlockList())
		m.Node.Readmit()
	case *cluster.ClusterTopology:
		m.size.Store(int64(len(ev.Members)))
		m.departed.change(ev.Joined, ev.Left)
		if m.topologies != nil {
			select {
			case m.topologies <- ev:
			case <-m.leaving:
			}
		}
	case *remoting.Disconnected:
		m.refused(ev.Peer.Name, ev.Err)
	case *remoting.NotAdmitted:
		m.refused(ev.Peer.Name, ev.Err)
	}
}

// refused judges why a peer does not talk to this member: because it does not regard it as one. If
// only one of the two has blocked the other, it is this one that has to go. If the cluster was in
// two parts, each has blocked the other: then the smaller part goes, or the one with the larger
// name.
func (m *Member) refused(by string, err error) {
	members, ok := blockedBy(err)
	mine := int(m.size.Load())
	if !ok || m.departed.has(by) && (mine > members || mine == members && m.Node.Name() < by) {
		return
	}
	m.expel.Do(func() {
		m.sys.Logger().Warn("pacluster: this process is no member any more", "says", by, "members", members, "here", mine)
		close(m.expelled)
	})
}

// Expelled is closed when other members have refused this one, because it is none any more: it did
// not answer the provider in time, because it stood still or was cut off. The others have made its
// grains anew. It can not join again: Proto.Actor blocks its actor system's id for ever. Shut it
// down, and begin with another actor system, or another process.
func (m *Member) Expelled() <-chan struct{} { return m.expelled }

// probe asks those that have departed, now and then, until the member is shut down. A node that
// answers by its goodbye was not dead, but cut off.
func (m *Member) probe() {
	for {
		select {
		case <-time.After(probeEvery/2 + rand.N(probeEvery)): //nolint:gosec // a pause
		case <-m.leaving:
			return
		}
		for _, addr := range m.departed.all() {
			pid := actor.NewPID(addr, cluster.DefaultGossipActorName)
			m.sys.Root.RequestFuture(pid, &actor.Touch{}, probeEvery)
		}
	}
}
