package remoting

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// Spawn spawns an actor of one of the Config.Kinds of the node at addr, and waits for the result.
// The actor's name is "Remote$" and name, or a number if name is empty. A name has no slash, as
// children's have, and does not begin with $. This node may reach, watch and stop it. An error that
// is ErrSpawn means that it was not spawned. After any other, *Unknown or ctx's, it may have been.
// Any goroutine but a loop's.
func (n *Node) Spawn(ctx context.Context, addr, kind, name string) (*actor.PID, error) {
	if err := eventloop.MayWait(); err != nil {
		return nil, fmt.Errorf("remoting: Spawn: %w", err)
	}
	pid, err := n.spawnRemote(ctx, addr, kind, name)
	if err != nil {
		return nil, fmt.Errorf("remoting: spawn %s at %s: %w", kind, addr, err)
	}
	return pid, nil
}

func (n *Node) spawnRemote(ctx context.Context, addr, kind, name string) (*actor.PID, error) {
	if !fitsFrame(addr) || !fitsFrame(kind) || len(kind) > frame.MaxType || name != "" && !fitsFrame(spawnedPrefix+name) {
		return nil, notSpawned(errors.New("an empty or long name"))
	}
	to := n.addresses.processOf(addr)
	answer := make(chan tables.Spawned, 1)
	r := frame.Record{Kind: frame.KindSpawn, Type: kind, Target: name}
	var p *peer
	var seq uint64
	var broken error
	for queued := false; !queued; {
		var err error
		if p, err = to.openPeer(); err != nil {
			return nil, notSpawned(err)
		}
		var ended bool
		queued, ended = p.putSystem(&r, func(p *peer) bool {
			if p.state == linkBroken {
				broken = unreachableWith(p.failure)
				return false
			}
			if !p.system.Room(r.Size()) {
				return false
			}
			seq = p.spawns.Add(answer)
			r.Seq = seq
			return true
		})
		switch {
		case queued || ended:
		case broken != nil:
			return nil, notSpawned(broken)
		default:
			return nil, notSpawned(ErrQueueFull)
		}
	}
	var res tables.Spawned
	select {
	case res = <-answer:
		n.rt.Scheduler().Resume()
	case <-ctx.Done():
		n.rt.Scheduler().Resume()
		p.mu.Lock()
		p.spawns.Take(seq)
		p.mu.Unlock()
		return nil, context.Cause(ctx)
	}
	return res.PID, res.Err
}
