package tables

import (
	"github.com/asynkron/protoactor-go/actor"
)

// Spawns are this node's calls of Spawn that a peer has not answered. They belong to the peer's
// mutex.
type Spawns struct {
	seq     uint64
	waiting ordered[uint64, chan<- Spawned]
}

// Spawned is the result of a spawn.
type Spawned struct {
	PID *actor.PID
	Err error
}

// Add enters a call whose answer is for c, which has room for it.
func (s *Spawns) Add(c chan<- Spawned) (seq uint64) {
	s.seq++
	s.waiting.add(s.seq, c)
	return s.seq
}

// Take removes a call.
func (s *Spawns) Take(seq uint64) (c chan<- Spawned, ok bool) { return s.waiting.remove(seq) }

// End removes all calls, and returns them in their order.
func (s *Spawns) End() (list []chan<- Spawned) {
	s.waiting.all(func(_ uint64, c chan<- Spawned) { list = append(list, c) })
	s.waiting = ordered[uint64, chan<- Spawned]{}
	return list
}
