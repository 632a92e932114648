package remoting

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
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
