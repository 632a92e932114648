package remoting

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
)

// spawns are this node's calls of Spawn that a peer has not answered. They belong to the peer's
// mutex.
type spawns struct {
	seq     uint64
	waiting ordered[uint64, chan<- spawnResult]
}

type spawnResult struct {
	pid *actor.PID
	err error
}

func (s *spawns) end() (list []chan<- spawnResult) {
	s.waiting.all(func(_ uint64, c chan<- spawnResult) { list = append(list, c) })
	s.waiting = ordered[uint64, chan<- spawnResult]{}
	return list
}

// failSpawns ends calls that get no answer any more.
func failSpawns(list []chan<- spawnResult, err error) {
	for _, c := range list {
		c <- spawnResult{err: err}
	}
}

// notSpawned is why nothing was spawned.
func notSpawned(err error) error { return fmt.Errorf("%w: %w", ErrSpawn, err) }

// spawnedPrefix begins the names of what is spawned for peers, as with Proto.Actor's remote.
const spawnedPrefix = inbox.Spawned

// spawnsAtOnce is how many of a peer's are being spawned at a time, and spawnsMost how many of all
// peers', also of those that are gone.
const (
	spawnsAtOnce = 64
	spawnsMost   = 1 << 12
)

// Spawn has the node at addr spawn an actor of one of its Config.Kinds, and waits until that has
// happened. The actor's name is "Remote$" and name, or a number if name is empty. A name has no
// slash, as children's have, and does not begin with $. This node may reach, watch and stop it. An
// error that is ErrSpawn says that it was not spawned. After any other, *Unknown or ctx's, it may
// have been. Any goroutine but a loop's.
func (n *Node) Spawn(ctx context.Context, addr, kind, name string) (*actor.PID, error) {
	if err := eventloop.MayWait(); err != nil {
		return nil, fmt.Errorf("remoting: Spawn: %w", err)
	}
	pid, err := n.spawn(ctx, addr, kind, name)
	if err != nil {
		return nil, fmt.Errorf("remoting: spawn %s at %s: %w", kind, addr, err)
	}
	return pid, nil
}

func (n *Node) spawn(ctx context.Context, addr, kind, name string) (*actor.PID, error) {
	if !sayable(addr) || !sayable(kind) || len(kind) > frame.MaxType || name != "" && !sayable(spawnedPrefix+name) {
		return nil, notSpawned(errors.New("an empty or long name"))
	}
	to := n.process(addr)
	answer := make(chan spawnResult, 1)
	r := frame.Record{Kind: frame.KindSpawn, Type: kind, Target: name}
	var p *peer
	var seq uint64
	var broken bool
	for queued := false; !queued; {
		var err error
		if p, err = to.open(); err != nil {
			return nil, notSpawned(err)
		}
		var ended bool
		queued, ended = p.putSystem(&r, func(p *peer) bool {
			broken = p.state == linkBroken
			if broken || !p.system.room(r.Size()) {
				return false
			}
			p.spawns.seq++
			seq = p.spawns.seq
			r.Seq = seq
			p.spawns.waiting.add(seq, answer)
			return true
		})
		switch {
		case queued || ended:
		case broken:
			return nil, notSpawned(ErrUnreachable)
		default:
			return nil, notSpawned(ErrQueueFull)
		}
	}
	var res spawnResult
	select {
	case res = <-answer:
		n.rt.Scheduler().Resume()
	case <-ctx.Done():
		n.rt.Scheduler().Resume()
		p.mu.Lock()
		p.spawns.waiting.remove(seq)
		p.mu.Unlock()
		return nil, context.Cause(ctx)
	}
	return res.pid, res.err
}

// answerSpawn takes the peer's answer to a Spawn.
func (l *link) answerSpawn(r *frame.Record) {
	l.p.mu.Lock()
	c, ok := l.p.spawns.waiting.remove(r.Seq)
	l.p.mu.Unlock()
	switch {
	case !ok:
	case r.Code == frame.SpawnedOK && r.Target != "":
		c <- spawnResult{pid: actor.NewPID(l.who.Name, r.Target)}
	case r.Code == frame.SpawnedExists:
		c <- spawnResult{err: notSpawned(actor.ErrNameExists)}
	case r.Code == frame.SpawnedDenied:
		c <- spawnResult{err: notSpawned(ErrDenied)}
	default:
		c <- spawnResult{err: fmt.Errorf("%w: %s", ErrSpawn, r.Reason)}
	}
}

// spawned is what has become of a Spawn of the peer's.
type spawned struct {
	number uint64 // of the connection
	answer frame.Record
}

// spawn spawns an actor for the peer, on a goroutine: its Props are the user's.
func (l *link) spawn(ctx actor.Context, r *frame.Record) {
	m := &spawned{l.number, frame.Record{Kind: frame.KindSpawned, Seq: r.Seq}}
	props := l.n.cfg.Kinds[r.Type]
	switch {
	case !l.n.rules.Load().allow(Spawn, r.Type) || !l.allowed(Spawn, r.Type):
		m.answer.Code, m.answer.Reason = frame.SpawnedDenied, ErrDenied.Error()
	case props == nil:
		m.answer.Code, m.answer.Reason = frame.SpawnedUnknown, "no such kind"
	case l.spawning >= spawnsAtOnce || l.n.spawning.Load() >= spawnsMost:
		m.answer.Code, m.answer.Reason = frame.SpawnedFailed, "too many at a time"
	default:
		l.spawning++
		self, n, name := l.self, l.n, r.Target
		n.spawning.Add(1)
		n.rt.Scheduler().Go(func() {
			defer n.sys.Root.Send(self, m)
			defer n.spawning.Add(-1)
			n.spawnFor(&m.answer, props, name)
		})
		return
	}
	l.p.putSystem(&m.answer, nil)
}

// spawnFor spawns an actor, and writes what has become of it into the answer.
func (n *Node) spawnFor(answer *frame.Record, props *actor.Props, name string) {
	answer.Code, answer.Reason = frame.SpawnedFailed, "it has not returned"
	defer func() {
		if v := recover(); v != nil {
			answer.Reason = fmt.Sprintf("it has panicked: %v", v)
		}
	}()
	// a child's, for which its parent must find no other actor, or one of those below
	if strings.Contains(name, "/") || strings.HasPrefix(name, "$") {
		answer.Reason = fmt.Sprintf("%q: a name has no slash, and does not begin with $", name)
		return
	}
	if name == "" {
		name = n.sys.ProcessRegistry.NextID()
	}
	switch pid, err := n.sys.Root.SpawnNamed(props, spawnedPrefix+name); {
	case errors.Is(err, actor.ErrNameExists):
		answer.Code, answer.Reason = frame.SpawnedExists, err.Error()
	case err != nil:
		answer.Reason = err.Error()
	default:
		answer.Code, answer.Reason, answer.Target = frame.SpawnedOK, "", pid.Id
	}
}

// spawned answers the peer.
func (l *link) spawned(m *spawned) {
	l.spawning--
	if l.up == nil || l.number != m.number || l.greeting != open {
		return
	}
	if m.answer.Code == frame.SpawnedOK {
		if proc, ok := l.n.sys.ProcessRegistry.GetLocal(m.answer.Target); ok {
			l.p.mu.Lock()
			l.p.grants.add(m.answer.Target, proc, Reach.bit()|Watch.bit()|Stop.bit())
			l.p.mu.Unlock()
		}
	}
	l.p.putSystem(&m.answer, nil)
}
