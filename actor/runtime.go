package actor

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Runtime is rdmactor in one ActorSystem: the loops and what runs on them.
type Runtime struct {
	sys    *actor.ActorSystem
	boxes  *boxes
	loops  []*loop
	off    *goroutines
	spread atomic.Uint32 // OnLoop actors spawned
}
