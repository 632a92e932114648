package remoting

import (
	"errors"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/inbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// spawnedPrefix begins the names of actors that are spawned for peers, as with Proto.Actor's
// remote.
const spawnedPrefix = inbox.Spawned

// spawnsAtOnce is how many of a peer's are being spawned at a time, and spawnsMost how many of all
// peers', also of those that are gone.
const (
	spawnsAtOnce = 64
	spawnsMost   = 1 << 12
)

// spawned is the result of a Spawn of the peer's.
type spawned struct {
	number uint64 // of the connection
	answer frame.Record
}

// IgnoreDeadLetterLogging: as admitted.
func (*spawned) IgnoreDeadLetterLogging() {}

// answerSpawn takes the peer's answer to a Spawn.
func (in *receiving) answerSpawn(r *frame.Record) {
	in.p.mu.Lock()
	c, ok := in.p.spawns.Take(r.Seq)
	in.p.mu.Unlock()
	switch {
	case !ok:
	case r.Code == frame.SpawnedOK && r.Target != "":
		c <- tables.Spawned{PID: actor.NewPID(in.who.Name, r.Target)}
	case r.Code == frame.SpawnedExists:
		c <- tables.Spawned{Err: notSpawned(actor.ErrNameExists)}
	case r.Code == frame.SpawnedDenied:
		c <- tables.Spawned{Err: notSpawned(ErrDenied)}
	default:
		c <- tables.Spawned{Err: fmt.Errorf("%w: %s", ErrSpawn, plain.Quote(r.Reason))}
	}
}

// handleSpawn spawns an actor for the peer, on a goroutine: its Props are the user's.
func (in *receiving) handleSpawn(r *frame.Record) {
	m := &spawned{in.number, frame.Record{Kind: frame.KindSpawned, Seq: r.Seq}}
	props := in.host.cfg.Kinds[r.Type]
	switch {
	case !in.host.rules.Load().allowsAccess(Spawn, r.Type) || !in.isAllowed(Spawn, r.Type):
		m.answer.Code, m.answer.Reason = frame.SpawnedDenied, ErrDenied.Error()
	case props == nil:
		m.answer.Code, m.answer.Reason = frame.SpawnedUnknown, "no such kind"
	case in.spawning >= spawnsAtOnce || in.host.spawning.Load() >= spawnsMost:
		m.answer.Code, m.answer.Reason = frame.SpawnedFailed, "too many at a time"
	default:
		in.spawning++
		self, h, name := in.self, in.host, r.Target
		h.spawning.Add(1)
		h.rt.Scheduler().Go(func() {
			defer h.sys.Root.Send(self, m)
			defer h.spawning.Add(-1)
			h.spawnFor(&m.answer, props, name)
		})
		return
	}
	in.p.putSystem(&m.answer, nil)
}

// spawnFor spawns an actor, and writes the result into the answer.
func (h *host) spawnFor(answer *frame.Record, props *actor.Props, name string) {
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
		name = h.sys.ProcessRegistry.NextID()
	}
	switch pid, err := h.sys.Root.SpawnNamed(props, spawnedPrefix+name); {
	case errors.Is(err, actor.ErrNameExists):
		answer.Code, answer.Reason = frame.SpawnedExists, err.Error()
	case err != nil:
		answer.Reason = err.Error()
	default:
		answer.Code, answer.Reason, answer.Target = frame.SpawnedOK, "", pid.Id
	}
}

// handleSpawned sends the peer the result of its spawn.
func (in *receiving) handleSpawned(m *spawned) {
	in.spawning--
	if in.up == nil || in.number != m.number || in.greeting != open {
		return
	}
	if m.answer.Code == frame.SpawnedOK {
		if proc, ok := in.host.sys.ProcessRegistry.GetLocal(m.answer.Target); ok {
			in.p.mu.Lock()
			ok = in.p.grants.Add(m.answer.Target, proc, Reach.accessBit()|Watch.accessBit()|Stop.accessBit(), in.host.hasProcess)
			in.p.mu.Unlock()
			if !ok {
				in.host.sys.Root.Stop(actor.NewPID(in.host.name, m.answer.Target))
				m.answer.Code, m.answer.Target = frame.SpawnedFailed, ""
				m.answer.Reason = fmt.Sprintf("the actors that the peer may reach take %d MiB", tables.GrantBytes>>20)
			}
		}
	}
	in.p.putSystem(&m.answer, nil)
}
