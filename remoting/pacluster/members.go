package pacluster

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"

	"github.com/rdmactor/rdmactor/remoting"
)

// Proto.Actor blocks a removed member's id forever, and does not notify the member. So a process
// that stood still, or that was cut off, would go on with grains that others have, too. Here the
// others refuse its connection and send the reason, and it leaves.

// probeEvery is the mean interval between attempts to reach departed members, because the network
// may have been in two parts. Of two members that dial each other at the same time only one learns
// that it is refused, and members that were started together would dial together each time.
const probeEvery = 3 * time.Second

// blocked is the reason for which Admit refuses a node that was removed. Its text is in the
// goodbye, from which that node learns this side of the dispute.
type blocked struct{ side side }

const (
	blockedText = "pacluster: it is no member any more, of a cluster of "
	unsettled   = "unsettled"
)

func (b *blocked) Error() string {
	text := fmt.Sprintf("%s%d led by %s", blockedText, b.side.size, b.side.leader)
	if !b.side.settled {
		text += " " + unsettled
	}
	return text
}

// Is reports that it is ErrBlocked.
func (b *blocked) Is(target error) bool { return target == ErrBlocked }

// refusal marks errors of this member's Admit, in contrast to the peer's.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// blockedBy reads from the reason of a disconnection that the peer, which has this name, has
// blocked this member, and the peer's side.
func blockedBy(name string, err error) (s side, ok bool) {
	var own refusal
	if !errors.Is(err, remoting.ErrBlocked) || errors.As(err, &own) {
		return s, false
	}
	_, text, ok := strings.Cut(err.Error(), blockedText)
	if !ok {
		return s, false
	}
	if _, err = fmt.Sscan(text, &s.size); err != nil {
		return s, false
	}
	s.leader, s.settled = name, true // earlier versions give the size only
	words := strings.Fields(text)
	if len(words) > 3 {
		s.leader = words[3]
	}
	s.settled = len(words) < 5 || words[4] != unsettled
	return s, true
}

// handleEvent handles an event of the actor system.
func (m *Member) handleEvent(ev any) {
	switch ev := ev.(type) {
	case *remote.EndpointTerminatedEvent: // a member was blocked just before
		m.blocked.Store(m.Cluster.Remote.BlockList())
		m.Node.Readmit()
	case *cluster.ClusterTopology:
		if m.topologies != nil {
			select {
			case m.topologies <- ev:
			case <-m.leaving:
			}
		}
	case *remoting.Disconnected:
		m.handleRefused(ev.Peer, ev.Err)
	case *remoting.NotAdmitted:
		m.handleRefused(ev.Peer, ev.Err)
	}
}

// handleRefused handles a peer that refuses this member because it has removed it.
func (m *Member) handleRefused(peer remoting.Peer, err error) {
	s, ok := blockedBy(peer.Name, err)
	if !ok {
		return
	}
	m.governor.updateRules(func(r *rules, now time.Duration) {
		by := cmp.Or(peer.Member, r.idAt(peer.Name)) // "": its goodbye arrived before its hello
		if !r.isAt(by, peer.Name) {
			return // a node may claim to be any member
		}
		r.memberClaimed(now, claim{by: by, name: peer.Name, side: s, direct: true, excluded: true})
	})
}

// Expelled is closed when this process has to leave the cluster, because other members have removed
// it: it did not answer the provider in time, because it stood still or was cut off. The others
// have made its grains anew. It stops its grains, and shuts itself down as Shutdown does; the owner
// still shuts down the actor system and the runtime. It cannot join again, as Proto.Actor blocks
// its actor system's id forever: begin with another actor system, or another process.
func (m *Member) Expelled() <-chan struct{} { return m.expelled }

// probeDeparted dials the departed members, now and then, until the member is shut down. A node
// that answers with a goodbye was not dead, but cut off.
func (m *Member) probeDeparted() {
	for {
		select {
		case <-time.After(probeEvery/2 + rand.N(probeEvery)): //nolint:gosec // a pause
		case <-m.leaving:
			return
		}
		for _, addr := range m.governor.lostAddresses() {
			pid := actor.NewPID(addr, cluster.DefaultGossipActorName)
			m.sys.Root.RequestFuture(pid, &actor.Touch{}, probeEvery)
		}
	}
}
