package remoting

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// watchedBy registers an actor of the peer's as the watcher of a local one. A target that the peer
// may not watch appears to be missing.
func (in *receiving) watchedBy(ctx actor.Context, r *frame.Record) {
	p := in.p
	if r.Sender.Address != "" {
		return // a watcher must be an actor of the peer's node
	}
	t := in.targetOf(r.Target)
	key := tables.Pair{Watcher: r.Sender.ID, Watched: r.Target}
	why := frame.TerminatedNotFound
	ok := in.host.hasProcess(r.Target)
	if ok {
		if err := in.checkAccess(t, Watch); err != nil {
			ok = false
			in.reportRefused(ctx, r.Target, actor.NewPID(in.who.Name, r.Sender.ID), fmt.Errorf("watch: %w", err))
		}
	}
	if ok {
		p.mu.Lock()
		if p.watches.HasTheirs(key) {
			p.mu.Unlock()
			return
		}
		if ok = p.watches.AddTheirs(key); !ok {
			why = frame.TerminatedAddress
		}
		p.mu.Unlock()
	}
	if !ok {
		p.putSystem(&frame.Record{Kind: frame.KindTerminated, Target: r.Sender.ID, Sender: frame.PID{ID: r.Target}, Code: why}, nil)
		return
	}
	in.inbox.DeliverSystem(t.pid, &actor.Watch{Watcher: actor.NewPID(in.who.Name, r.Sender.ID)}, systemBytes)
}

// systemBytes is the size at which an unconsumed system message counts.
const systemBytes = 64

func (in *receiving) unwatchedBy(r *frame.Record) {
	p := in.p
	p.mu.Lock()
	was := p.watches.RemoveTheirs(tables.Pair{Watcher: r.Sender.ID, Watched: r.Target})
	p.mu.Unlock()
	if !was {
		return
	}
	in.forgetWatcher(r.Target, r.Sender.ID)
}

// terminatedThere notifies a watcher of this node, if it is one.
func (in *receiving) terminatedThere(r *frame.Record) {
	p := in.p
	p.mu.Lock()
	w, was := p.watches.Remove(tables.Pair{Watcher: r.Target, Watched: r.Sender.ID})
	p.mu.Unlock()
	if was {
		why := actor.TerminatedReason(r.Code)
		if r.Code > frame.TerminatedNotFound {
			why = actor.TerminatedReason_Stopped
		}
		in.host.deliverTerminated(w, why)
	}
}

// handleStop stops an actor of this node.
func (in *receiving) handleStop(ctx actor.Context, r *frame.Record) {
	t := in.targetOf(r.Target)
	if err := in.checkAccess(t, Stop); err != nil {
		in.refuseRecord(ctx, r, frame.RefusedDenied, fmt.Errorf("stop: %w", err))
		return
	}
	if in.host.hasProcess(r.Target) {
		in.inbox.DeliverSystem(t.pid, &actor.Stop{}, systemBytes)
	}
}

// forgetWatcher makes an actor of this node forget a watcher of the peer's.
func (in *receiving) forgetWatcher(watched, watcher string) {
	if in.host.hasProcess(watched) {
		in.inbox.DeliverSystem(actor.NewPID(in.host.name, watched), &actor.Unwatch{Watcher: actor.NewPID(in.who.Name, watcher)}, systemBytes)
	}
}
