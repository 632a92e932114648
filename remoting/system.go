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
		p.watch(target, m.Watcher)
	case *actor.Unwatch:
		p.unwatch(target, m.Watcher)
	case *actor.Terminated:
		p.terminated(target, m)
	case *actor.Stop:
		p.Stop(target)
	default: // from a parent to its children, and no child is on another node
		p.roster.sys.DeadLetter.SendSystemMessage(target, message)
	}
}

// Stop has the peer stop its actor, if it exposes that.
func (p *process) Stop(target *actor.PID) {
	r := frame.Record{Kind: frame.KindStop, Target: target.Id, TargetRequest: target.RequestId}
	if !sayable(target.Id) || !p.system(&r, func(to *peer) bool { return to.system.Room(r.Size()) }) {
		p.roster.sys.DeadLetter.SendSystemMessage(target, &actor.Stop{})
	}
}

// watch has a local actor notified when the peer's terminates, or when the peer is lost.
func (p *process) watch(target, watcher *actor.PID) {
	n := p.roster
	if watcher == nil || !n.local(watcher.Address) {
		n.sys.DeadLetter.SendSystemMessage(target, &actor.Watch{Watcher: watcher})
		return
	}
	w := tables.Watch{Watcher: watcher, Watched: target}
	if !sayable(target.Id) || !sayable(watcher.Id) {
		n.terminated(w, actor.TerminatedReason_NotFound)
		return
	}
	r := frame.Record{Kind: frame.KindWatch, Target: target.Id, Sender: frame.PID{ID: watcher.Id}}
	if !p.system(&r, func(to *peer) bool {
		if to.state == linkBroken {
			return false
		}
		if to.sweepWatchesLocked(); !to.system.Room(r.Size()) {
			return false
		}
		to.watches.Add(tables.Pair{Watcher: watcher.Id, Watched: target.Id}, w)
		return true
	}) {
		n.terminated(w, actor.TerminatedReason_AddressTerminated)
	}
}

// sweepWatchesLocked ends the watches of actors that are gone, now and then: Proto.Actor's do not
// end them when they stop.
func (p *peer) sweepWatchesLocked() {
	for _, w := range p.watches.Sweep(p.host.alive) {
		p.putSystemLocked(&frame.Record{Kind: frame.KindUnwatch, Target: w.Watched.Id, Sender: frame.PID{ID: w.Watcher.Id}})
	}
}

func (p *process) unwatch(target, watcher *actor.PID) {
	if watcher == nil || !p.roster.local(watcher.Address) {
		return
	}
	r := frame.Record{Kind: frame.KindUnwatch, Target: target.Id, Sender: frame.PID{ID: watcher.Id}}
	_ = p.existing(&r, func(to *peer) bool {
		_, was := to.watches.Remove(tables.Pair{Watcher: watcher.Id, Watched: target.Id})
		return was
	})
}

// terminated notifies a watcher of the peer's that an actor of this node has terminated.
func (p *process) terminated(watcher *actor.PID, m *actor.Terminated) {
	if m.Who == nil || !p.roster.local(m.Who.Address) {
		return
	}
	r := frame.Record{
		Kind: frame.KindTerminated, Target: watcher.Id, Sender: frame.PID{ID: m.Who.Id}, Code: frame.Code(m.Why),
	}
	_ = p.existing(&r, func(to *peer) bool {
		return to.watches.RemoveTheirs(tables.Pair{Watcher: watcher.Id, Watched: m.Who.Id})
	})
}

// system queues a record for the peer, if before allows it, which is called with its mutex locked.
// False: it was not queued.
func (p *process) system(r *frame.Record, before func(*peer) bool) bool {
	for {
		to, err := p.open()
		if err != nil {
			return false
		}
		if queued, ended := to.putSystem(r, before); !ended {
			return queued
		}
	}
}

// existing is system for a record that is of no use to a peer that has come since.
func (p *process) existing(r *frame.Record, before func(*peer) bool) bool {
	to := p.current()
	if to == nil {
		return false
	}
	queued, _ := to.putSystem(r, before)
	return queued
}
