package remoting

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// SendSystemMessage handles Proto.Actor's system messages: watches, and that a watched actor of
// this node has terminated.
func (p *process) SendSystemMessage(target *actor.PID, message any) {
	switch m := message.(type) {
	case *actor.Watch:
		p.watchRemote(target, m.Watcher)
	case *actor.Unwatch:
		p.unwatchRemote(target, m.Watcher)
	case *actor.Terminated:
		p.sendTerminated(target, m)
	case *actor.Stop:
		p.Stop(target)
	default: // from a parent to its children, and no child is on another node
		p.roster.sys.DeadLetter.SendSystemMessage(target, message)
	}
}

// Stop has the peer stop its actor, if it exposes that.
func (p *process) Stop(target *actor.PID) {
	r := frame.Record{Kind: frame.KindStop, Target: target.Id, TargetRequest: target.RequestId}
	if !fitsFrame(target.Id) || !p.queueSystem(&r, func(to *peer) bool { return to.system.Room(r.Size()) }) {
		p.roster.sys.DeadLetter.SendSystemMessage(target, &actor.Stop{})
	}
}

// watchRemote notifies a local actor when the peer's actor terminates, or when the peer is lost.
func (p *process) watchRemote(target, watcher *actor.PID) {
	n := p.roster
	if watcher == nil || !n.isLocal(watcher.Address) {
		n.sys.DeadLetter.SendSystemMessage(target, &actor.Watch{Watcher: watcher})
		return
	}
	w := tables.Watch{Watcher: watcher, Watched: target}
	if !fitsFrame(target.Id) || !fitsFrame(watcher.Id) {
		n.deliverTerminated(w, actor.TerminatedReason_NotFound)
		return
	}
	r := frame.Record{Kind: frame.KindWatch, Target: target.Id, Sender: frame.PID{ID: watcher.Id}}
	if !p.queueSystem(&r, func(to *peer) bool {
		if to.state == linkBroken {
			return false
		}
		if to.sweepWatchesLocked(); !to.system.Room(r.Size()) {
			return false
		}
		to.watches.Add(tables.Pair{Watcher: watcher.Id, Watched: target.Id}, w)
		return true
	}) {
		n.deliverTerminated(w, actor.TerminatedReason_AddressTerminated)
	}
}

// sweepWatchesLocked ends the watches of actors that are gone, now and then: Proto.Actor's do not
// end them when they stop.
func (p *peer) sweepWatchesLocked() {
	for _, w := range p.watches.Sweep(p.host.hasProcess) {
		p.putSystemLocked(&frame.Record{Kind: frame.KindUnwatch, Target: w.Watched.Id, Sender: frame.PID{ID: w.Watcher.Id}})
	}
}

func (p *process) unwatchRemote(target, watcher *actor.PID) {
	if watcher == nil || !p.roster.isLocal(watcher.Address) {
		return
	}
	r := frame.Record{Kind: frame.KindUnwatch, Target: target.Id, Sender: frame.PID{ID: watcher.Id}}
	p.queueIfKnown(&r, func(to *peer) bool {
		_, was := to.watches.Remove(tables.Pair{Watcher: watcher.Id, Watched: target.Id})
		return was
	})
}

// sendTerminated notifies a watcher of the peer's that an actor of this node has terminated.
func (p *process) sendTerminated(watcher *actor.PID, m *actor.Terminated) {
	if m.Who == nil || !p.roster.isLocal(m.Who.Address) {
		return
	}
	r := frame.Record{
		Kind: frame.KindTerminated, Target: watcher.Id, Sender: frame.PID{ID: m.Who.Id}, Code: frame.Code(m.Why),
	}
	p.queueIfKnown(&r, func(to *peer) bool {
		return to.watches.RemoveTheirs(tables.Pair{Watcher: watcher.Id, Watched: m.Who.Id})
	})
}

// queueSystem queues a record for the peer, if before allows it. False: it was not queued.
func (p *process) queueSystem(r *frame.Record, before func(*peer) bool) bool {
	for {
		to, err := p.openPeer()
		if err != nil {
			return false
		}
		if queued, ended := to.putSystem(r, before); !ended {
			return queued
		}
	}
}

// queueIfKnown queues a record only if there is a peer at the address.
func (p *process) queueIfKnown(r *frame.Record, before func(*peer) bool) {
	if to := p.currentPeer(); to != nil {
		to.putSystem(r, before)
	}
}
